"""Artifacts: versions of files that runs log and use."""
