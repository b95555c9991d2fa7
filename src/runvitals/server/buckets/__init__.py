"""Buckets of teams: where they are, whether they work, and what a team has there."""
