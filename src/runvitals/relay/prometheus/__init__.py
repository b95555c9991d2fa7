"""Prometheus' side of the relay: names, the page that Prometheus reads, and remote write."""
