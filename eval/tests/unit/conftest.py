"""Properties are held by examples that may take any time: on a busy machine a draw took 281 ms."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
