"""The routes of files."""
