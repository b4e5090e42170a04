"""Waiting for an event that only a broken program never lets happen."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.conftest import WAIT_SECONDS

_Result = TypeVar("_Result")


def wait_until(condition: Callable[[], _Result]) -> _Result:
    """The first true result of a condition; fails after WAIT_SECONDS without one."""
    end = time.monotonic() + WAIT_SECONDS
    while not (result := condition()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)  # short limit: between two looks
    return result
