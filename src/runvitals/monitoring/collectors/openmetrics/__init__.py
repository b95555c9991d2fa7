"""Prometheus and OpenMetrics endpoints that the user names."""
