"""Kubernetes nodes: their pods and containers, as the runtime shows them by CRI, version 1."""
