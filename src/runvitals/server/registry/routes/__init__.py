"""The routes of registries."""
