"""The relay: a process of its own that tails runs' journals and delivers them to any number of destinations.

`destination.py` is what a destination must be, `batch.py` what it gets, `destinations/` holds one file for
each.
"""
