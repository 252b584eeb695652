"""The Docker engine: how it is reached, and what its answers and fields mean."""
