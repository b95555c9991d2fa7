"""Stores of samples: the interface, SQLite, ClickHouse and cold storage."""
