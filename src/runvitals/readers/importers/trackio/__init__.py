"""Imports projects of trackio: SQLite files."""
