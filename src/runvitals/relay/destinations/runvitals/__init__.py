"""Delivery to a runvitals server."""
