"""What is new in runs, sent as it happens."""
