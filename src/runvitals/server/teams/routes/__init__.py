"""`/teams/…`: teams, their members and settings. For shared servers only: it loads the tables of accounts."""
