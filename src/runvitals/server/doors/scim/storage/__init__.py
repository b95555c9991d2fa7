"""The tables of what identity providers have sent."""
