"""Published traces of clusters as jobs.

A GPU of a trace is a CPU here: what is shared out is the same. No trace tells a learning curve: the
jobs have the usual one.
"""

KINDS = ("gavel", "pollux", "philly", "alibaba")
"""The traces that can be read."""
