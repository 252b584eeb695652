"""Unix tools that make deep-learning containers finish sooner and meet their targets."""

__version__ = "0.1.0"
