"""Settings of all tests: a slow machine fails none of them."""

from hypothesis import settings

settings.register_profile("no deadlines", deadline=None)
settings.load_profile("no deadlines")
