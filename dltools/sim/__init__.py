"""Jobs on hosts in virtual time, under any policy.

Pure: no Docker, no files, no clock, and no randomness without a seed.
"""
