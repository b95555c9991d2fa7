"""The routes of comparisons."""
