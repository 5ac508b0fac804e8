"""Speed and scale, as ratios within one run: absolute times hang on the machine, ratios hold."""
