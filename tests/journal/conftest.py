"""Hypothesis settings: no deadline, because a busy machine must not fail a test."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
