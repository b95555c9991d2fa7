"""The routes about the condition of a shared server."""
