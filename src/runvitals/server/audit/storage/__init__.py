"""The tables of the audit log."""
