"""Prometheus: its naming rules, the page it scrapes, and remote write."""
