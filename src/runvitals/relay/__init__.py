"""The relay: a process that tails the journals of runs and delivers them to any number of destinations.

`destination.py` defines the interface of a destination and `batch.py` what it receives; `destinations/` lists
the built-in ones.
"""
