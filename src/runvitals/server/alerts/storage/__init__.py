"""The outbox of notifications, and the automations of teams."""
