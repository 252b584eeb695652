"""Measures GPUs by NVML: the use of each, and the containers that use it."""
