"""Applies the actions of plans to containers, and restores the containers."""
