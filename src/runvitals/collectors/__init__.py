"""The public names of `runvitals.monitoring.collectors`, for packages with sources of their own."""
