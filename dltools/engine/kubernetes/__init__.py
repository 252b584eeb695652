"""Kubernetes through its API server: lasting quotas of pods, which kubelet sets."""
