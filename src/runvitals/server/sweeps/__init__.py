"""Sweeps: the search for the best parameters of a training over many runs."""
