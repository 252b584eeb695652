"""The past replayed and the future tried: jobs on machines in virtual time, under any policy.

Pure: no Docker, no files, no clock, and no randomness without a seed.
"""
