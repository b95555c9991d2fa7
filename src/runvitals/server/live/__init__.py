"""News of runs, sent as they happen."""
