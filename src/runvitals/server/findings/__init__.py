"""Findings about the runs that a server shows."""
