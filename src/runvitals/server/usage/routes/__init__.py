"""`/usage…`, `/storage…` and `/billing…`: what runs used, and what it costs. Loads the tables of accounts."""
