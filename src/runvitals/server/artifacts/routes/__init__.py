"""The routes of artifacts."""
