"""The simulator: runs jobs on hosts in virtual time, under any policy.

It uses no Docker, no files and no clock, and random numbers only from a seed.
"""
