"""Artifacts: versions of files that runs make and use."""
