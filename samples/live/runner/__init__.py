"""Runs the jobs of a workload file as real containers, and simulates them from the same file."""
