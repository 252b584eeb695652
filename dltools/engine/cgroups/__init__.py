"""Cgroups as containers: those that no engine keeps a record of, and those of batch jobs."""
