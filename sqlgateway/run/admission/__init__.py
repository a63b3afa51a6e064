"""Admission of SQL requests: which run, which wait, and which are refused.

slots.py: assigns slots, with a queue for each environment.
running_counts.py: counts the running requests, and compares the counts with the limits.
shared_counts.py: the counts of all web processes, in shared memory.
limits.py: the limits, from the settings or of an organization.
"""
