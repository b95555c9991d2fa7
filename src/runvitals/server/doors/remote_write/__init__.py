"""Prometheus remote write, 1.0 and 2.0: `POST /api/v1/write` and `/prometheus/api/v1/write`."""
