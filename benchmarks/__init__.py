"""Benchmarks of speed and scale. Limits are on ratios within one run, because absolute times depend on the machine."""
