"""Sweeps, the agents that run them, and the runs of each."""
