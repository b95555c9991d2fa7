"""The findings of runs in the metadata store."""
