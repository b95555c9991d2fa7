"""Reads journals from where a destination is, and delivers until the destination has everything."""
