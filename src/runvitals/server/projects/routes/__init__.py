"""`/entities/…`: projects by whose they are. For shared servers only: it loads the tables of accounts."""
