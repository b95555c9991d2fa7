"""Imports runs of a W&B server by its public API: W&B's service, one of your own, or ours."""
