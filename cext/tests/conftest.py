"""A slow example is not a wrong one: timings never decide a unit test."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
