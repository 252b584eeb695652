"""Observations as bytes: a module for each format, all of them listed in `registry`."""
