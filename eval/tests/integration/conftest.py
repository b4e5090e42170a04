"""Fixtures of the integration tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import shell
from tests.integration.scripted_llm import Service
from tests.integration.serving import upstream_by_hand


@pytest.fixture(scope="module")
def _upstream() -> Iterator[str]:
    """One for all tests of a file: its start imports the program, and takes as long as a test."""
    with upstream_by_hand(shell()) as url:
        yield url


@pytest.fixture
def service_url(_upstream: str, environment: dict[str, str], workspace: Path) -> str:
    """A service that every later call of the program uses, without a script or a request."""
    environment |= {
        "OPENAI_API_KEY": "sk-canary-7c1e5d9b3a",
        "OPENAI_BASE_URL": f"{_upstream}/v1",
        "ANTHROPIC_API_KEY": "sk-canary-7c1e5d9b3a",
        "ANTHROPIC_BASE_URL": _upstream,
        "MEMCONFORM_CACHE": str(workspace / "cache"),
    }
    Service(_upstream).script()
    return _upstream


@pytest.fixture
def service(service_url: str) -> Service:
    """The same, with what scripts it."""
    return Service(service_url)
