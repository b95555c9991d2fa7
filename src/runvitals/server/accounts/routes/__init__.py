"""Sign-in, the user's own account and other users. The shared server alone includes it.

Each resource is a module with a `router`, listed in `routers`.
"""
