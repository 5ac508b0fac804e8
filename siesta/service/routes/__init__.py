"""HTTP routes, one file for each group of endpoints."""
