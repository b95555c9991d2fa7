"""Runs as files: CSV, JSON lines, Arrow and Parquet."""
