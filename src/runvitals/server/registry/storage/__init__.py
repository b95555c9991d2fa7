"""The tables of the registry."""
