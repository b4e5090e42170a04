"""What all Python tests share: those of the harness, and those of sdks/py.

Each session has a home of its own: `tests.isolation`.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.isolation",)

# Time is no oracle: on a busy machine one draw took 281 ms, and generating was "too slow".
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("untimed")

_UNIT = ("eval/tests/unit", "eval/tests/contract", "sdks/py/tests")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need no daemon, so that `make test` can name them all at once."""
    folders = tuple(Path(__file__).parent / folder for folder in _UNIT)
    for item in items:
        if any(map(item.path.is_relative_to, folders)):
            item.add_marker("unit")
