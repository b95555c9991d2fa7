"""Runs: what is known of them, lists and filters."""
