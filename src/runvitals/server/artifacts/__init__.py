"""Versions of files that runs make and use."""
