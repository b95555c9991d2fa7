"""The routes of the audit log."""
