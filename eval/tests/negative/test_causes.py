"""Known causes against daemons in this process that have one defect, and then another one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.concurrency import Slots
from memconform.conformance.catalog import catalog
from memconform.conformance.findings import findings, known_list
from memconform.conformance.known_failures import KnownFailure, load_known, stale_causes
from memconform.conformance.results import Check, Result, SdkResult
from memconform.conformance.suite import SdkFinished, conform
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import ExitCode

CASES = """\
- id: finds
  title: A search answers
  rules: [core.search.text]
  steps:
    - http: POST ${brain_url}/search
      json: {query: heron, mode: bm25}
      expect:
        found: {at: /chunks, is: []}
- id: stores
  title: A document is stored and found
  rules: [core.search.text]
  documents: {a.md: The heron waits.}
  steps:
    - http: POST ${brain_url}/search
      json: {query: heron, mode: bm25}
      expect:
        found: {at: /chunks, is: []}
- id: changes
  title: A document is written and read
  rules: [core.search.text]
  steps:
    - http: PUT ${brain_url}/documents?path=a.md
      text: a
      expect:
        written: 204
    - http: GET ${brain_url}/documents/read?path=a.md
      expect:
        read: {body: a}
"""
TRACE = {
    "requestedMode": "bm25", "effectiveMode": "bm25", "embedderUsed": False, "reranked": False,
    "fellBackToBm25": False, "candidateK": 50, "searchMs": 1.0,
}  # fmt: skip
NO_DOCUMENTS = "POST /v1/brains: missing key documents"
SEARCH = "POST /v1/brains/{brain}/search"


class _Daemon(SdkRunner):
    """Answers with a brain that lacks `documents`, and with one more defect."""

    name = "defective"

    def __init__(self, defect: str) -> None:
        self._defect = defect

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator["object"]:  # type: ignore[override]
        async with (
            serving(self._answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            yield daemon

    async def _answer(self, request: RawRequest, exchange: RawExchange) -> None:
        match (request.method, request.path.partition("?")[0].strip("/").split("/")[3:]):
            case ("GET", []):
                await exchange.json({"ok": True})
            case ("POST", []):
                brain: dict[str, Any] = {"brainId": request.json()["brainId"], "documents": 0}
                brain |= {"chunks": 0, "vectors": 0, "pending": 0}
                if self._defect != "none":
                    del brain["documents"]
                await exchange.json(brain, 201)
            case ("POST", ["search"]) if self._defect == "500":
                await exchange.problem(500, "internal_error", "oops")
            case ("POST", ["search"]):
                chunks: list[Any] | None = None if self._defect == "null" else []
                await exchange.json({"chunks": chunks, "tookMs": 1.0, "trace": TRACE})
            case ("DELETE", []):
                await exchange.raw(b"HTTP/1.1 204 X\r\n\r\n")
            case _:
                await exchange.problem(404, "not_found", "no such route")


def _run(folder: Path, defect: str, *known: KnownFailure) -> SdkResult:
    (folder / "cases").mkdir(exist_ok=True)
    (folder / "cases" / "cases.yaml").write_text(CASES)

    async def run() -> SdkResult:
        events = conform(
            "defective",
            lambda: _Daemon(defect),
            catalog(folder / "cases"),
            known=known,
            folder=folder / defect,
            run_id="run",
            slots=Slots(1),
        )
        results = [event.result async for event in events if isinstance(event, SdkFinished)]
        return results[0]

    return asyncio.run(run())


def _check(result: SdkResult, name: str) -> Check:
    return next(check for case in result.cases for check in case.checks if check.id == name)


def _causes(result: SdkResult, name: str) -> list[str]:
    return [cause.cause for cause in _check(result, name).causes]


def _known(**entry: str) -> KnownFailure:
    common = {"reason": "r", "link": "https://example.org/1", "expires": "2999-01-31"}
    return KnownFailure.model_validate(common | entry)


def test_a_list_for_one_missing_key_covers_just_that(tmp_path: Path) -> None:
    result = _run(tmp_path, "key", _known(cause=NO_DOCUMENTS))
    assert _check(result, "finds#wire").result is Result.XFAIL
    assert _check(result, "finds#found").result is Result.PASS


@pytest.mark.parametrize(
    ("defect", "cause"),
    [("null", f"{SEARCH}: chunks is null"), ("500", f"{SEARCH}: status 500, expected 200")],
)
def test_a_list_for_one_missing_key_hides_neither_a_null_array_nor_a_500(
    tmp_path: Path, defect: str, cause: str
) -> None:
    listed = _known(cause=NO_DOCUMENTS)
    result = _run(tmp_path, defect, listed)
    assert _causes(result, "finds#wire") == [NO_DOCUMENTS, cause]
    assert _check(result, "finds#wire").result is Result.FAIL
    assert _causes(result, "finds#found") == [cause]
    assert _check(result, "finds#found").result is Result.FAIL
    assert result.exit_code is not ExitCode.OK
    red = [finding.cause for finding in findings(result) if finding.is_red]
    assert cause in red
    assert NO_DOCUMENTS not in red
    # Only with both causes listed is the check expected.
    both = _run(tmp_path, defect, listed, _known(cause=cause))
    assert _check(both, "finds#wire").result is Result.XFAIL
    assert _check(both, "finds#found").result is Result.XFAIL


def test_checks_after_a_failed_setup_count_for_its_cause(tmp_path: Path) -> None:
    result = _run(tmp_path, "key")
    missing = "POST /v1/brains/{brain}/ingest/file: status 404, never valid here"
    assert _check(result, "stores#found").result is Result.UNTESTABLE
    assert _causes(result, "stores#found") == [missing]
    assert "/ingest/file" in _check(result, "stores#found").curl


def test_a_later_check_counts_for_the_request_that_failed_before_it(tmp_path: Path) -> None:
    result = _run(tmp_path, "key")
    cause = "PUT /v1/brains/{brain}/documents: status 404, expected 204"
    assert _causes(result, "changes#written") == [cause]
    assert _causes(result, "changes#read") == [cause]
    [finding] = [f for f in findings(result) if f.cause == cause]
    assert (finding.checks, len(finding.cases)) == (2, 1)


def test_a_known_cause_that_no_longer_occurs_is_stale(tmp_path: Path) -> None:
    listed = [_known(cause=NO_DOCUMENTS)]
    with_it, without = _run(tmp_path, "key", *listed), _run(tmp_path, "none", *listed)
    assert stale_causes(with_it, listed, complete=True) == []
    assert stale_causes(without, listed, complete=True) == [NO_DOCUMENTS]
    # Some of the cases alone do not show that a cause is gone.
    assert stale_causes(without, listed, complete=False) == []
    named = [_known(cause=NO_DOCUMENTS, check="finds#wire")]
    assert stale_causes(without, named, complete=False) == [f"finds#wire {NO_DOCUMENTS}"]
    assert stale_causes(without, [_known(cause=NO_DOCUMENTS, kind="flaky")], complete=True) == []


def test_a_written_list_covers_all_failures_once_its_links_are_filled_in(tmp_path: Path) -> None:
    before = _run(tmp_path, "null")
    path = tmp_path / "known.yaml"
    path.write_text(
        known_list([before], datetime.now(UTC).date(), name_sdks=False).replace(
            "link: TODO", "link: https://example.org/1"
        )
    )
    after = _run(tmp_path, "null", *load_known(path))
    assert before.counts()[Result.FAIL] > 0
    assert after.counts()[Result.FAIL] == 0
    assert after.counts()[Result.XFAIL] == before.counts()[Result.FAIL]
    # What could not be tested stays so.
    assert after.counts()[Result.UNTESTABLE] == before.counts()[Result.UNTESTABLE] > 0


def test_every_check_that_did_not_pass_has_a_cause(tmp_path: Path) -> None:
    for defect in ("key", "null", "500"):
        for case in _run(tmp_path, defect).cases:
            for check in case.checks:
                passed = check.result in (Result.PASS, Result.NOT_APPLICABLE)
                assert bool(check.causes) is not passed, check
