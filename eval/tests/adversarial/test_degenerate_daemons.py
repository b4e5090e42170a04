"""All cases on daemons that do next to nothing: which pass there, and why they may."""

import asyncio
import gc
from collections import Counter
from pathlib import Path

import pytest

from memconform.concurrency import Slots
from memconform.conformance.catalog import catalog
from memconform.conformance.results import IMPLICIT, Result
from memconform.conformance.suite import SdkFinished, conform
from tests.fakes.degenerate import Degeneracy, DegenerateRunner

pytestmark = [
    # httpcore leaves transports open if a request is cancelled. They are collected here.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REASONS = {
    "health": "it is healthy",
    "head-endless": "it ends what never ends, and survives",
    "malformed-problem": "it answers what is not HTTP as it answers everything, and survives",
    "origin-spaces": "it serves the brain, and rejects what is foreign",
    "start-timeouts-accepted": "it starts with these values, and creates brains",
    "url-escape-refused": "it serves other routes, and rejects these",
    "order-unknown-brain-documents": "it serves these routes in a brain that exists",
    "order-unknown-brain": "it serves these routes in a brain that exists",
    "method-head-length": "it answers HEAD with the length of what GET has",
    "ingest-batch-replaced-items": "it counts the bytes of what it acknowledges",
    "doc-read-conditions": "it stores and reads documents",
    "search-leap-centuries": "it answers searches, and these dates exist",
    "version": "it states its version",
    "auth-health": "health needs no token",
    "auth-off": "no token is set",
    "brain-id-accepted": "it creates these brains, and describes them",
    "alive-half-request": "it survives, and describes the brain",
    "alive-no-http": "it survives, and describes the brain",
    "alive-bad-host": "it survives, and describes the brain",
    "alive-huge-head": "it survives, and describes the brain",
    "alive-pipelined": "it answers the requests in order",
    "brain-id-encoded": "it serves other brains, and rejects these",
    "brain-id-dot-segments": "it serves other brains, and rejects these",
    "brain-unknown": "it serves these routes in a brain that exists",
    "doc-unknown-brain": "it serves these routes in a brain that exists",
    "shape-problems": "it describes brains, and rejects the unknown one",
    "wire-unknown-route": "it serves other routes, and rejects these",
    "wire-errors-keep-connection": "it rejects the first request, and answers the second",
    "wire-types-brain": "it creates brains, and rejects these bodies",
    "body-refused-brain": "it creates brains, and rejects these bodies",
    "wire-types-ingest": "it stores documents, and rejects these bodies",
    "wire-null-is-missing": "it stores documents, and rejects these bodies",
    "ingest-missing-key": "it stores documents, and rejects these bodies",
    "ingest-base64-refused": "it stores documents, and rejects these bodies",
    "ingest-no-read": "it stores documents, and rejects these bodies",
    "body-refused": "it stores documents, and rejects these bodies",
    "body-depth": "it stores documents, and rejects these bodies",
    "doc-parameters-refused": "it reads documents, and rejects these paths",
    "ingest-limit-file": "it stores and counts what it acknowledges",
    "ingest-limit-batch": "it stores and counts what it acknowledges",
    "ingest-batch-size": "it stores and counts what it acknowledges",
    "chunk-one": "it stores and counts what it acknowledges",
    "doc-media-type": "it stores and reads documents",
    "doc-read-ingested": "it stores and reads documents",
    "doc-read-large": "it stores and reads documents",
    "origin-absolute-target": "it serves the brain, and none of these is foreign",
    "origin-host": "it serves the brain, and rejects these",
    "method-head": "it lists no brains, with and without a body",
    "large-batch-items": "it stores and counts what it acknowledges",
    "ingest-base64-canonical": "it stores documents, and rejects these bodies",
    "route-slash": "it serves other routes, and rejects these",
    "method-head-missing": "it serves other routes, and rejects these",
    "search-empty-brain": "an empty brain has nothing to find",
    "doc-list-empty-brain": "an empty brain has nothing to list",
}
"""Why a case may pass on a degenerate daemon: it does what the case is about."""

_SURVIVES = {
    "health": 1, "version": 1, "auth-health": 3, "brain-id-accepted": 5, "alive-half-request": 10,
    "alive-no-http": 12, "alive-bad-host": 8, "alive-huge-head": 3, "alive-pipelined": 1,
    "origin-absolute-target": 2, "head-endless": 5, "malformed-problem": 3, "origin-spaces": 2,
    "start-timeouts-accepted": 6,
}  # fmt: skip
_STORES = {
    "ingest-limit-file": 1, "ingest-limit-batch": 1, "ingest-batch-size": 1, "chunk-one": 1,
    "doc-media-type": 4, "doc-read-ingested": 3, "doc-read-large": 1,
    "large-batch-items": 1, "doc-read-conditions": 5, "ingest-batch-replaced-items": 1,
}  # fmt: skip
_REJECTS = {"brain-id-encoded": 11, "brain-id-dot-segments": 4, "wire-errors-keep-connection": 5}
_REJECTS_404 = {
    **_REJECTS, "wire-unknown-route": 8, "shape-problems": 1, "route-slash": 9,
    "method-head-missing": 3, "url-escape-refused": 5, "order-unknown-brain": 1,
}  # fmt: skip
_REJECTS_400 = {
    **_REJECTS, "wire-types-brain": 2, "body-refused-brain": 6, "origin-host": 40,
    "url-escape-refused": 5, "malformed-problem": 4,
}  # fmt: skip
_UNKNOWN_BRAINS = {
    "brain-unknown": 3, "doc-unknown-brain": 2, "order-unknown-brain": 3,
    "order-unknown-brain-documents": 2,
}  # fmt: skip
_LISTS_NOTHING = {
    "search-empty-brain": 4, "doc-list-empty-brain": 3, "auth-off": 1,
}  # fmt: skip
_REJECTS_BODIES = {
    "wire-types-ingest": 1, "wire-null-is-missing": 2, "ingest-missing-key": 3,
    "ingest-base64-refused": 9, "ingest-no-read": 6, "body-refused": 38, "body-depth": 4,
    "doc-parameters-refused": 2, "ingest-base64-canonical": 8,
}  # fmt: skip


def _nothing(answer: str, *, health: bool = False) -> Degeneracy:
    return Degeneracy(answer, health=health, brains=False, acknowledges=False, stores=False)


def _brains(answer: str) -> Degeneracy:
    return Degeneracy(answer, acknowledges=False, stores=False)


DAEMONS: dict[str, tuple[Degeneracy, dict[str, int]]] = {
    "404 to everything": (_nothing("not_found"), {}),
    "500 to everything": (_nothing("internal_error"), {}),
    "an empty object for everything": (_nothing("empty"), {}),
    "401 to everything but health": (
        _nothing("unauthorized", health=True),
        {"health": 1, "version": 1, "auth-health": 3},
    ),
    "brains, and else 400": (_brains("validation_error"), _SURVIVES | _REJECTS_400),
    "brains, and else 404": (_brains("not_found"), _SURVIVES | _REJECTS_404 | {"brain-unknown": 1}),
    "brains, and else 500": (_brains("internal_error"), _SURVIVES),
    "brains, and else an empty object": (
        _brains("empty"),
        _SURVIVES | {"auth-off": 1, "method-head-length": 4},
    ),
    "acknowledges all, stores nothing": (
        Degeneracy("nothing", stores=False),
        _SURVIVES | _LISTS_NOTHING | {"method-head-length": 1, "ingest-batch-replaced-items": 1},
    ),
    "stores all, finds and lists nothing": (
        Degeneracy("nothing"),
        _SURVIVES
        | _STORES
        | _LISTS_NOTHING
        | {"method-head": 1, "method-head-length": 1, "search-leap-centuries": 6},
    ),
    "stores all, and else 400": (
        Degeneracy("validation_error"),
        _SURVIVES | _STORES | _REJECTS_400 | _REJECTS_BODIES,
    ),
    "stores all, and else 404": (
        Degeneracy("not_found"),
        _SURVIVES | _STORES | _REJECTS_404 | _UNKNOWN_BRAINS,
    ),
    "stores all, and else 409": (Degeneracy("conflict"), _SURVIVES | _STORES),
    "stores all, and else 502": (Degeneracy("bad_gateway"), _SURVIVES | _STORES),
}
"""Each daemon, and how many variants of which cases pass on it."""

_IN_CI = "acknowledges all, stores nothing"
"""A daemon takes 45 s of CPU with all cases. CI runs this one, on a ninth of them; all daemons,
which differ in what they refuse or in how much they do, run on all cases by night and in
`make bench`."""

_BUSY = "alive-idle-connections"
"""Its 200 connections, served by the event loop that opens them, may time out."""

_WAITS = ("slow-endless", "slow-trickle", "slow-renewed")
"""Their requests wait one after another, 20 s each, for an end that comes from no such daemon."""

_ALIKE = "vector-"
"""How the cases generated from the vectors begin: one in five of all, and alike. They are about
what a search finds, counts or rejects, like the cases of the other files."""


def _is_taken(base: str) -> bool:
    return base != _BUSY and base not in _WAITS and not base.startswith(_ALIKE)


_PARAMS = [
    pytest.param(_IN_CI, 9, id=f"{_IN_CI}, a ninth"),
    *(pytest.param(kind, 1, id=kind, marks=pytest.mark.slow) for kind in DAEMONS),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "stride"), _PARAMS)
def test_only_cases_about_what_a_daemon_does_pass_on_it(
    kind: str, stride: int, tmp_path: Path
) -> None:
    degeneracy, passing = DAEMONS[kind]
    bases = set([*dict.fromkeys(e.base for e in catalog() if _is_taken(e.base))][::stride])
    expected = {base: variants for base, variants in passing.items() if base in bases}
    assert expected or not passing

    async def run() -> Counter[str]:
        events = conform(
            "degenerate",
            lambda: DegenerateRunner(degeneracy),
            [entry for entry in catalog() if entry.base in bases],
            known=(),
            folder=tmp_path,
            run_id="degenerate",
            slots=Slots(4),
        )
        [finished] = [event async for event in events if isinstance(event, SdkFinished)]
        passed: Counter[str] = Counter()
        for case in finished.result.cases:
            own = [c for c in case.checks if c.id.rpartition("#")[2] not in IMPLICIT]
            assert not any(check.result is Result.ERROR for check in own), case
            if all(check.result is Result.PASS for check in own):
                passed[case.case.partition("[")[0]] += 1
        return passed

    try:
        assert dict(asyncio.run(run())) == expected
    finally:
        gc.collect()


def test_every_pass_has_a_reason_and_every_reason_a_pass() -> None:
    passing = {case for _, expected in DAEMONS.values() for case in expected}
    assert passing == set(REASONS)
