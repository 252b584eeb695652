"""One host's containers: the engine that runs them, their cgroups, and the host."""
