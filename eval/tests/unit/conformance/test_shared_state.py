"""Cases about files, which need a claim, and cases that depend on where a daemon stores."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memconform.concurrency import Slots
from memconform.conformance.applicability import skip_reason
from memconform.conformance.case import Case, DiskStep, ProcessStep
from memconform.conformance.catalog import CaseVariant, catalog, walk_steps
from memconform.conformance.process_report import limit_files
from memconform.conformance.results import Result
from memconform.conformance.suite import CaseFinished, conform
from memconform.contract.names import Profile
from memconform.daemons.sdk_runner import SdkRunner
from tests.fakes.degenerate import Degeneracy, DegenerateRunner

_REASON = "profile shared-state is not claimed"


def _runner(*, without: Profile | None = None) -> SdkRunner:
    runner = DegenerateRunner(Degeneracy("nothing"))
    runner.profiles = tuple(profile for profile in Profile if profile is not without)
    return runner


def _reasons(runner: SdkRunner) -> dict[str, str | None]:
    return {entry.id: skip_reason(entry, runner) for entry in catalog()}


def test_every_case_that_accesses_the_state_folder_needs_shared_state() -> None:
    reasons = _reasons(_runner(without=Profile.SHARED_STATE))
    accessing = {
        entry.id
        for entry in catalog()
        if any(isinstance(step, DiskStep) for step in walk_steps(entry.case))
    }
    assert {case for case in accessing if reasons[case] != _REASON} == {"state-outside"}
    assert reasons["state-second-daemon"] == _REASON
    assert reasons["after-change[stopped]"] == _REASON


def test_what_is_seen_over_http_needs_no_shared_state() -> None:
    reasons = _reasons(_runner(without=Profile.SHARED_STATE))
    kept = {"ingest-durable[batch]", "doc-durable[rename]", "after-change[killed]", "state-restart"}
    kept |= {case for case in reasons if case.startswith(("state-killed-", "state-disk-"))}
    assert {case: reasons[case] for case in kept if reasons[case] is not None} == {}
    assert len(kept) > 12


def test_a_daemon_that_claims_shared_state_gets_all_its_cases() -> None:
    assert _REASON not in _reasons(_runner()).values()


def test_a_disk_is_filled_only_where_the_system_can_limit_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(resource, "prlimit")
    reasons = _reasons(_runner())
    filling = {
        entry.id
        for entry in catalog()
        if any(
            isinstance(s, ProcessStep) and s.process == "fill_disk" for s in walk_steps(entry.case)
        )
    }
    assert filling
    assert {case for case, why in reasons.items() if why and "limit the files" in why} == filling


_WRITER = """
import sys
for line in sys.stdin:
    try:
        with open(sys.argv[1], "wb") as file:
            file.write(bytes(int(line)))
        print("stored", flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
"""


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system has no prlimit")
def test_a_full_disk_takes_small_files_until_it_has_space_again(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def write(size: int) -> str:
            print(size, file=process.stdin, flush=True)
            return process.stdout.readline().strip() if process.stdout else ""

        assert write(3_000_000) == "stored"
        limit_files(process.pid, full=True)
        assert write(3_000_000) == "OSError"
        assert write(100) == "stored"
        limit_files(process.pid, full=False)
        assert write(3_000_000) == "stored"
        process.stdin.close()


async def _results(tmp_path: Path, step: dict[str, Any]) -> dict[str, Result]:
    later = {"http": "GET /healthz", "expect": {"later": 200}}
    case = Case.model_validate(
        {"id": "a", "title": "a", "rules": ["core.version"], "brain": False, "steps": [step, later]}
    )
    events = conform(
        "degenerate",
        lambda: DegenerateRunner(Degeneracy("nothing")),
        [CaseVariant("a", "a", case, {}, "a.yaml")],
        known=(),
        folder=tmp_path,
        run_id="test",
        slots=Slots(1),
    )
    finished = [event.run.result async for event in events if isinstance(event, CaseFinished)]
    return {check.id: check.result for result in finished for check in result.checks}


async def test_a_case_ends_where_it_does_not_apply(tmp_path: Path) -> None:
    step = {"http": "GET /healthz", "only_if": [{"status": 404}], "expect": {"now": 404}}
    results = await _results(tmp_path, step)
    assert results["a#now"] is Result.NOT_APPLICABLE
    assert results["a#later"] is Result.NOT_APPLICABLE
    assert results["a#alive"] is Result.PASS


async def test_a_case_goes_on_where_it_applies(tmp_path: Path) -> None:
    step = {"http": "GET /healthz", "only_if": [{"status": 200}], "expect": {"now": 404}}
    results = await _results(tmp_path, step)
    assert results["a#now"] is Result.FAIL
    assert results["a#later"] is Result.PASS
