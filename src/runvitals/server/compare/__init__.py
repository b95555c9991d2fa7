"""Differences between runs."""
