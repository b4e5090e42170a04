"""Filters by folders, as daemons with and without a dialect are sent them."""

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.client.failures import ContractViolatedError
from memconform.contract.core import Filters, SearchRequest
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.question import Question
from memconform.errors import DaemonError
from memconform.ingest.documents import Document
from memconform.measuring.proven_brain import ProvenBrain
from memconform.replay.agent_prompts import Tool
from memconform.replay.daemon import BrainIndex
from memconform.replay.documents import SharedBrain
from memconform.replay.placement import Placement, has_prefixes, joint_prefix
from memconform.replay.retrieval import PartRetrieval
from memconform.replay.tool_loop import agent_prefixes
from tests.unit.lme_results import RETRIEVAL

_SESSION, _FACT = "raw/lme/s1.md", "memory/project/p/s1-001.md"
_DOCUMENTS = [
    Document(_SESSION, b"---\na: 1\n---\nuser: I moved to Lyon.\n", "text/markdown"),
    Document(_FACT, b"---\na: 1\n---\nThe user moved.\n", "text/markdown"),
]


class _Client:
    """Finds these documents for any query, or only for one that begins so; or raises."""

    def __init__(self, found: list[str] | Exception, begin: str = "") -> None:
        self.found = found
        self.begin = begin
        self.requests: list[SearchRequest] = []
        self.dialect: str | None = None

    async def search(self, brain: str, request: SearchRequest) -> tuple[Any, Any]:
        assert brain == "b"
        self.requests.append(request)
        if isinstance(self.found, Exception):
            raise self.found
        found = self.found if request.query.startswith(self.begin) else []
        trace = SimpleNamespace(effective_mode=None, tuning=None)
        return SimpleNamespace(chunks=found, trace=trace), None


class _Monitor:
    halted = None

    async def call(self, made: Awaitable[Any]) -> Any:
        return await made


def _index(client: _Client, *, is_own: bool = True, **filters: str) -> BrainIndex:
    brain = SharedBrain()
    turns = (Turn("t", "user", "I moved to Lyon.", by_user=True),)
    brain.add(Conversation("q1", (Session("s1", "2023/05/30 (Tue) 23:40", turns),)))
    documents = SimpleNamespace(paths=[_SESSION, _FACT])
    client.dialect = None if is_own else "theirs"
    stubs: dict[str, Any] = {
        "client": client,
        "monitor": _Monitor(),
        "seeded": SimpleNamespace(documents=documents),
        "queries": None,
    }
    return BrainIndex(
        ProvenBrain(**stubs, name="b", auto_modes=None),
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


async def test_one_document_that_is_not_found_is_no_proof_against_the_filters() -> None:
    others = [
        Document(f"memory/project/p/s1-{n:03}.md", f"{word} moved.".encode(), "text/markdown")
        for n, word in enumerate(("A", "B", "C", "D"), 2)
    ]
    await _index(_Client([_FACT], "C"), project="p").require_filters_find(others)
    client = _Client([_FACT], "D")
    with pytest.raises(DaemonError) as caught:
        await _index(client, project="p").require_filters_find(others)
    assert "by the words of 3 documents" in caught.value.message
    assert len(client.requests) == 3


@pytest.mark.parametrize("tool", ["kb_search", "memory_recall"])
@pytest.mark.parametrize("is_own", [True, False])
async def test_an_agent_is_not_judged_on_searches_that_find_nothing(
    tool: Tool, *, is_own: bool
) -> None:
    """Every search of an agent has a prefix, whatever the filters of the settings."""
    prefix = agent_prefixes("p")[tool]
    client = _Client([])
    with pytest.raises(DaemonError) as caught:
        await _index(client, is_own=is_own).require_filters_find(_DOCUMENTS, prefix)
    assert caught.value.code == "filters_find_nothing"
    assert f"the prefix {prefix} of an agent's searches" in caught.value.message
    [request] = client.requests
    assert request.filters == Filters(path_prefix=prefix)


async def test_every_prefix_of_an_agent_is_tried_before_its_questions() -> None:
    client = _Client([_FACT])
    plan: Any = SimpleNamespace(
        agent=object(), brain=SimpleNamespace(documents=lambda: iter(_DOCUMENTS)), questions=[]
    )
    stub: Any = None
    retrieval = PartRetrieval(plan, stub, stub, "run", stub)
    await retrieval._require_filters_find(_index(client))
    prefixes = [each.filters.path_prefix for each in client.requests if each.filters is not None]
    assert prefixes == list(agent_prefixes("p").values())
    plan.agent = None
    await retrieval._require_filters_find(_index(client))
    assert len(client.requests) == len(prefixes)


async def test_nothing_is_tried_without_filters() -> None:
    client = _Client([])
    await _index(client).require_filters_find(_DOCUMENTS)
    assert client.requests == []


async def test_a_failed_search_is_left_to_the_questions() -> None:
    client = _Client(ContractViolatedError("bad_trace", "no mode"))
    await _index(client, project="p").require_filters_find(_DOCUMENTS)
    assert len(client.requests) == 1
