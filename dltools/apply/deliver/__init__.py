"""Delivering models: a job's checkpoint is copied out of its container."""
