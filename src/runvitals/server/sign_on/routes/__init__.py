"""Signing in by a provider, the logins of an account, and their settings; only in the shared server.

Each resource is a module with a `router`, listed in `routers`.
"""
