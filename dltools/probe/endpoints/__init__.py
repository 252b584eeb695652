"""Response times of serving containers, from their Prometheus endpoints."""
