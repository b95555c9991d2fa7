"""The organisation: its settings, roles and audit log."""
