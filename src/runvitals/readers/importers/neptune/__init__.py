"""Imports exports of Neptune: Parquet files."""
