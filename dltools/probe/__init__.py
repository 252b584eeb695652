"""Samples hosts: the use, the limits and the progress of their containers."""
