"""The query API of Prometheus over the store, for Grafana: `/prometheus/api/v1/…`."""
