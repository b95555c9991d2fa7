"""Registered models, their versions and their stages."""
