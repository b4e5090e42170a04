"""`memconform mutate` on real daemons: what it reports, and what it leaves untouched."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from memconform.conformance.catalog import catalog
from memconform.conformance.mutation.mutant_table import TABLE, mutants
from memconform.conformance.mutation.results import Fate
from memconform.conformance.mutation.score import MutantFinished, ScoringFinished, score
from memconform.conformance.results import SdkResult
from memconform.conformance.suite import SdkFinished
from memconform.daemons.discovery import find_runner
from tests.conftest import CHECKOUT, Ended


def _report(ended: Ended) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ended.folder / "m.json").read_text())
    return loaded


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "sample",
    [
        # Samples are nested: the 12 include the 6; `make mutate` takes all.
        pytest.param(6, marks=pytest.mark.exhaustive),
        pytest.param(12, marks=pytest.mark.slow),
    ],
)
def test_fixed_sample_is_killed_and_the_good_daemon_passes(
    sample: int, memconform: Callable[..., Ended]
) -> None:
    ended = memconform("mutate", "--sample", str(sample), "--json", "m.json", timeout=850)
    report = _report(ended)
    assert report["false_alarms"] == []
    assert report["survivors"] == [], ended.err
    assert ended.code == 0, ended.err
    assert report["killed"] == report["total"] == sample
    jsonschema.validate(report, json.loads(memconform("mutate", "--schema").out))
    assert all(mutant["by"] and mutant["got"] for mutant in report["mutants"])


def test_the_sample_is_always_the_same(installed: Callable[..., Ended]) -> None:
    first = installed("mutate", "--sample", "5", "--list").out
    assert first == installed("mutate", "--sample", "5", "--list").out
    assert len(first.splitlines()) == 5


@pytest.mark.capability("mutate")
def test_a_suite_without_checks_lets_a_mutant_survive(cache: Path, tmp_path: Path) -> None:
    del cache
    blind = [entry for entry in catalog() if entry.base in ("version", "search-nothing-found")]
    selected = [m for m in mutants() if m.id in ("version-contract", "chunks-null", "topk-ignored")]

    async def scored() -> tuple[dict[str, Fate], ScoringFinished]:
        fates, last = {}, None
        runs = score(
            lambda: find_runner("py", CHECKOUT), selected, blind, folder=tmp_path, daemons=2
        )
        async for event in runs:
            if isinstance(event, MutantFinished):
                fates[event.result.id] = event.result.fate
            elif isinstance(event, ScoringFinished):
                last = event
        assert last is not None
        return fates, last

    fates, last = asyncio.run(scored())
    assert fates == {
        "version-contract": Fate.KILLED,
        "chunks-null": Fate.KILLED,
        "topk-ignored": Fate.SURVIVED,
    }
    assert last.alarms == ()


def test_unfinished_cases_of_a_lost_daemon_do_not_count_as_survival(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def lost(*_: Any, **__: Any) -> AsyncIterator[SdkFinished]:
        finished = SdkResult(
            sdk="py", profiles=[], modes=[], cases=[], problems=["it was lost"], took_s=0
        )
        yield SdkFinished(finished)

    monkeypatch.setattr("memconform.conformance.mutation.score.conform", lost)
    selected = [m for m in mutants() if m.id == "topk-ignored"]

    async def scored() -> list[object]:
        runs = score(
            lambda: find_runner("py", CHECKOUT), selected, catalog(), folder=tmp_path, daemons=1
        )
        return [event async for event in runs]

    *_, finished, last = asyncio.run(scored())
    assert isinstance(finished, MutantFinished)
    assert finished.result.fate is Fate.UNTESTABLE
    assert "could not be run" in finished.result.got[0]
    assert isinstance(last, ScoringFinished)
    assert last.alarms[0].got == ["it was lost"]


def test_a_failing_unmodified_daemon_is_a_false_alarm(
    memconform: Callable[..., Ended], cache: Path, tmp_path: Path
) -> None:
    with _served(cache, tmp_path, JB_EMBED_PROVIDER="none") as url:
        ended = memconform(
            "mutate", "--sdk", f"url:{url}", "--mutant", "topk-ignored", "--json", "m.json"
        )
    assert ended.code == 1, ended.err
    report = _report(ended)
    assert report["killed"] == report["total"] == 1
    failing = {alarm["check"] for alarm in report["false_alarms"]}
    assert failing == {"search-all[semantic]#all", "search-all[hybrid]#all"}
    assert "FALSE ALARM search-all[hybrid]#all (fail)" in ended.err
    # A check that fails on the unmodified daemon proves nothing about the mutant.
    assert report["mutants"][0]["by"] not in failing


@contextmanager
def _served(cache: Path, root: Path, **env: str) -> Iterator[str]:
    """Start a py daemon outside the harness and yield its address."""
    built = (cache / "memconform" / "builds").glob("py-*/bin/memory")
    memory = max(built, key=lambda path: path.stat().st_mtime)
    argv = [str(memory), "serve", "--addr", "127.0.0.1:0", "--root", str(root)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=os.environ | env) as daemon:
        assert daemon.stdout is not None
        try:
            yield daemon.stdout.readline().removeprefix("listening on ").strip()
        finally:
            daemon.terminate()


def test_a_running_daemon_keeps_its_own_brains(
    memconform: Callable[..., Ended], cache: Path, tmp_path: Path
) -> None:
    with _served(cache, tmp_path, JB_EMBED_PROVIDER="fake") as url:
        httpx.post(f"{url}/v1/brains", json={"brainId": "mine"}).raise_for_status()
        ended = memconform(
            *("mutate", "--against", f"url:{url}", "--json", "m.json", "-j", "2"),
            *("--mutant", "topk-ignored", "--mutant", "version-contract", "--mutant", "stop-never"),
        )
        remaining = [item["brainId"] for item in httpx.get(f"{url}/v1/brains").json()["items"]]
    report = _report(ended)
    assert ended.code == 0, ended.err
    assert (report["killed"], report["total"], report["left_out"]) == (1, 1, 2)
    assert remaining == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--mutant", "no-such"], 4, "no mutant matches"),
        (["--sdk", "py", "--against", "go"], 2, "not several"),
        (["--list", "--json", "-"], 2, "--list and --json exclude each other"),
        (["--sdk", "nobody"], 2, "unknown SDK"),
        (["--sdk", "url:https://127.0.0.1:1"], 2, "behind a proxy"),
        (
            ["--sdk", "go", "--mutant", "version-contract"],
            4,
            "none of the selected mutants applies to",
        ),
        (["--sdk", "url:http://127.0.0.1:1", "--mutant", "topk-ignored"], 3, "127.0.0.1:1"),
    ],
)
def test_reports_what_cannot_be_mutated(
    memconform: Callable[..., Ended], arguments: list[str], code: int, word: str
) -> None:
    ended = memconform("mutate", *arguments)
    assert ended.code == code, ended.err
    assert word in ended.err


def test_a_patch_that_does_not_apply_stops_the_daemon() -> None:
    folder = TABLE.with_name("source_patch")
    edits = json.dumps([{"file": "colorsys.py", "find": "no such text", "put": "x"}])
    ended = subprocess.run(
        [sys.executable, "-c", "import colorsys"],
        env={"PYTHONPATH": str(folder), "MEMCONFORM_SOURCE": edits},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 96
    assert "'no such text' must occur exactly once" in ended.stderr
