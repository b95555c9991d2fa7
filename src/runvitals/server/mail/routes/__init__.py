"""The routes of the mail server's settings."""
