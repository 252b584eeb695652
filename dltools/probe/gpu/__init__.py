"""GPUs, measured by NVML: what each does, and which containers use it."""
