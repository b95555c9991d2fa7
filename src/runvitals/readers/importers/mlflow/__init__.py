"""Imports the runs of an MLflow store: a SQLite file, a folder `mlruns`, or a tracking server."""
