"""Settings of this folder's property tests: a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
