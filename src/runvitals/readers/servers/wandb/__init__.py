"""Reads the runs of a server under the names of W&B's `Api`."""
