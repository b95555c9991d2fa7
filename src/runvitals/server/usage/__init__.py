"""Computes what runs used, from the stores: the roll-up, its settings, and what exports and pages show."""
