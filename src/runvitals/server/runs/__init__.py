"""Runs: what is known of them, lists and filters, over journals or the store."""
