"""The organisation: its settings, roles and members."""
