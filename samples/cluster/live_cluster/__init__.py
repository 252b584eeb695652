"""Runs the jobs of a workload file as services of a Swarm, and compares what became of them."""
