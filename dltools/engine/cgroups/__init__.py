"""Processes in cgroups that no container engine has made, and jobs of Slurm and pods as cgroups."""
