"""Measuring: what a Docker host's containers use, are allowed, and report."""
