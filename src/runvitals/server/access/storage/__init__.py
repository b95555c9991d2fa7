"""The tables that decisions read."""
