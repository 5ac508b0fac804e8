"""Comparing methods: running them, measuring them, reporting what came out."""
