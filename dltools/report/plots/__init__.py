"""Runs as plots: each panel answers one question, and can be read without colour."""
