"""The metadata database, SQLite or PostgreSQL: engine, transactions, migrations, locks."""
