"""The routes of runs."""
