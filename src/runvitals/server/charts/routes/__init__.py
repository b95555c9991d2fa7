"""The routes of charts."""
