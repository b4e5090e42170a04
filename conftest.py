"""What all Python tests share: those of the harness, and those of sdks/py."""

from hypothesis import HealthCheck, settings

# Time is no oracle: on a busy machine one draw took 281 ms, and generating was "too slow".
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("untimed")
