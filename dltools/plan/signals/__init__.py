"""Signals: what policies compute from the history of each container.

Growth, learning curves and predictions, paces, efforts, targets, busy threads and busy CPUs. Each
depends on observations alone. Nothing here knows a policy.
"""
