"""Podman: Docker's API with differences, and its own where it has a better one."""
