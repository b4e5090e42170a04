"""Filters by folders, as daemons with and without a dialect are sent them."""

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.client.failures import ContractViolatedError
from memconform.contract.core import Filters, SearchRequest
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.model import Question
from memconform.errors import DaemonError
from memconform.ingest.documents import Document
from memconform.replay.daemon import BrainIndex
from memconform.replay.documents import SharedBrain
from memconform.replay.placement import Placement, has_prefixes, joint_prefix
from tests.unit.lme_results import RETRIEVAL

_SESSION, _FACT = "raw/lme/s1.md", "memory/project/p/s1-001.md"
_DOCUMENTS = [
    Document(_SESSION, b"---\na: 1\n---\nuser: I moved to Lyon.\n", "text/markdown"),
    Document(_FACT, b"---\na: 1\n---\nThe user moved.\n", "text/markdown"),
]


class _Client:
    """Finds these documents for any query, or raises."""

    def __init__(self, found: list[str] | Exception) -> None:
        self.found = found
        self.requests: list[SearchRequest] = []

    async def search(self, brain: str, request: SearchRequest) -> tuple[Any, Any]:
        assert brain == "b"
        self.requests.append(request)
        if isinstance(self.found, Exception):
            raise self.found
        return SimpleNamespace(chunks=self.found), None


class _Monitor:
    halted = None

    async def call(self, made: Awaitable[Any]) -> Any:
        return await made


def _index(client: _Client, *, is_own: bool = True, **filters: str) -> BrainIndex:
    brain = SharedBrain()
    turns = (Turn("t", "user", "I moved to Lyon.", by_user=True),)
    brain.add(Conversation("q1", (Session("s1", "2023/05/30 (Tue) 23:40", turns),)))
    stubs: dict[str, Any] = {
        "session": SimpleNamespace(client=client, monitor=_Monitor()),
        "seeded": SimpleNamespace(documents=SimpleNamespace(paths=[_SESSION, _FACT])),
        "verification": None,
    }
    return BrainIndex(
        **stubs,
        auto_modes=None,
        is_own=is_own,
        brain="b",
        placement=Placement(brain.sessions, "p"),
        settings=RETRIEVAL.model_copy(update=filters),
        sessions=brain.paths,
    )


@pytest.mark.parametrize(
    ("filters", "prefix"),
    [
        ({}, None),
        ({"scope": "project"}, "memory/project/"),
        ({"scope": "project", "project": "p"}, "memory/project/p/"),
        ({"path_prefix": "memory/", "project": "p"}, "memory/project/p/"),
        ({"path_prefix": "raw/lme/s", "scope": "raw"}, "raw/lme/s"),
    ],
)
def test_one_prefix_says_what_filters_say_together(
    filters: dict[str, str], prefix: str | None
) -> None:
    given: dict[str, str | None] = {"path_prefix": None, "scope": None, "project": None, **filters}
    assert joint_prefix(**given) == prefix
    together = {"path_prefix": prefix, "scope": None, "project": None}
    for document in _DOCUMENTS:
        assert has_prefixes(document.path, **given) == has_prefixes(document.path, **together)


@pytest.mark.parametrize(
    ("is_own", "sent"),
    [
        (True, Filters(path_prefix="memory/", project="p")),
        (False, Filters(path_prefix="memory/project/p/")),
    ],
)
async def test_a_daemon_with_a_dialect_gets_a_prefix(*, is_own: bool, sent: Filters) -> None:
    """The Go daemon of jeffs-brain found nothing: its project is a folder that nobody fills."""
    client = _Client([_FACT])
    index = _index(client, is_own=is_own, path_prefix="memory/", project="p")
    await index.require_filters_find(_DOCUMENTS)
    [request] = client.requests
    assert request.filters == sent
    assert request.query == "The user moved."
    params = index._params(Question("q1", "Where?"), (_SESSION,), None)
    assert params.filters == sent


async def test_filters_that_leave_nothing_are_no_score_of_zero() -> None:
    index = _index(_Client([]), project="p")
    with pytest.raises(DaemonError) as caught:
        await index.require_filters_find(_DOCUMENTS)
    assert caught.value.code == "filters_find_nothing"
    assert _FACT in caught.value.message


async def test_nothing_is_tried_without_filters() -> None:
    client = _Client([])
    await _index(client).require_filters_find(_DOCUMENTS)
    assert client.requests == []


async def test_a_failed_search_is_left_to_the_questions() -> None:
    client = _Client(ContractViolatedError("bad_trace", "no mode"))
    await _index(client, project="p").require_filters_find(_DOCUMENTS)
    assert len(client.requests) == 1
