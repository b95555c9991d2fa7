"""The routes of findings."""
