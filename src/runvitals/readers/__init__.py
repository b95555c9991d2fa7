"""Reads runs from journals, servers, W&B's files, and other systems."""
