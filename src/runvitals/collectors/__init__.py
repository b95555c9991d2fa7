"""The public names of `runvitals.agent.collectors`, for packages with sources of their own."""
