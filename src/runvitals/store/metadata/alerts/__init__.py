"""What users are told: the outbox of notifications, and the automations of teams."""
