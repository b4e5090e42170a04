"""Fixtures of the integration tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.scripted_llm import Service
from tests.integration.serving import upstream_by_hand


@pytest.fixture
def service(environment: dict[str, str], workspace: Path) -> Iterator[Service]:
    """A service that every later call of the program uses."""
    with upstream_by_hand(environment) as url:
        environment |= {
            "OPENAI_API_KEY": "sk-canary-7c1e5d9b3a",
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_API_KEY": "sk-canary-7c1e5d9b3a",
            "ANTHROPIC_BASE_URL": url,
            "MEMCONFORM_CACHE": str(workspace / "cache"),
        }
        yield Service(url)
