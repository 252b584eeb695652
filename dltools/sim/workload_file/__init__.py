"""Workload files: jobs and hosts as TOML, see dltools-workload(5)."""
