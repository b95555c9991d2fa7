"""The routes of reports."""
