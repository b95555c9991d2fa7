"""Users, teams, keys, sessions, invitations, settings and the audit log. See `account_store`."""
