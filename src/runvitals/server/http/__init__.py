"""Requests and responses of the server: limits, logs, errors, the page and what all routes use."""
