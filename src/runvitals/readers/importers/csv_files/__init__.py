"""Imports CSV files: each is a run."""
