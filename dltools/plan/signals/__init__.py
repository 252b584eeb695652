"""What policies go by: the history of each container, and what follows from it.

Growth, learning curves and what they predict, paces, efforts, targets, busy threads and CPUs: each
is a pure function or a value of what was observed. Nothing here knows a policy.
"""
