"""The audit log: what was changed by whom, kept and sent on."""
