"""The page about dialects reproduces a number of jeffs-brain's own runner, question by question."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.daemons.build import build_key
from memconform.daemons.manifest import load_manifest
from tests.conftest import CHECKOUT, Ended

_THEIRS = os.environ.get("JEFFS_BRAIN")
_BUILD_SECONDS = 900

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(
        _THEIRS is None, reason="JEFFS_BRAIN names no checkout of jeffs-brain/memory"
    ),
]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The environment of calls, with the user's checkout; builds need the network."""
    del environment["PYTHONPATH"]
    return environment | {"JEFFS_BRAIN": _THEIRS or ""}


def _page() -> tuple[str, list[str]]:
    """The program that makes the documents, and the words of the command that asks."""
    text = (CHECKOUT / "docs" / "DIALECTS.md").read_text(encoding="utf-8")
    section = text.partition("## Reproducing a number")[2].partition("\n## ")[0]
    found = re.search(
        r"<<'END'\n(.+?)^END\n(memconform .+?)^```", section, re.DOTALL | re.MULTILINE
    )
    assert found is not None
    program, command = found.groups()
    return program, shlex.split(os.path.expandvars(command.replace("\\\n", " ")))


def _their_questions(workspace: Path, daemon: Path) -> list[dict[str, Any]]:
    """What their runner stores of each question, with this daemon in place of `uv run memory`."""
    uv = workspace / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(f'#!/bin/sh\nshift 2\nexec {shlex.quote(str(daemon))} "$@"\n')
    uv.chmod(0o755)
    flags = ("--dataset", "datasets/lme.jsonl", "--scorer", "exact", "--floor", "0")
    fakes = {"JB_LLM_PROVIDER": "fake", "JB_EMBED_PROVIDER": "fake"}
    subprocess.run(
        [
            *(sys.executable, "runner.py", "--sdk", "py", *flags, "--seed-reference-brain"),
            *("--scenario", "search-retrieve-only", "--mode", "bm25", "--output", workspace),
        ],
        cwd=Path(_THEIRS or "") / "eval",
        env=os.environ
        | fakes
        | {"PATH": f"{uv.parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        timeout=_BUILD_SECONDS,
    )
    [result] = workspace.glob("2*/py.json")
    questions: list[dict[str, Any]] = json.loads(result.read_text())["questions"]
    return questions


def test_every_ranking_score_and_verdict_is_that_of_their_runner(
    installed: Callable[..., Ended], workspace: Path, cache: Path
) -> None:
    program, command = _page()
    dataset = Path(_THEIRS or "") / "eval" / "datasets" / "lme.jsonl"
    folder = workspace / "corpus"
    subprocess.run([sys.executable, "-", dataset, folder], input=program, text=True, check=True)
    assert command[:3] == ["memconform", "run", "--sdk"]
    ended = installed("run", "--sdk", CHECKOUT / command[3], *command[4:], timeout=_BUILD_SECONDS)
    assert ended.code == 0, ended.err
    [path] = (workspace / "results").glob("2*/*.json")
    ours = json.loads(path.read_text())
    adapter = CHECKOUT / command[3]
    build = build_key(load_manifest(adapter / "sdk.toml"), adapter)[:16]
    daemon = cache / "memconform" / "builds" / f"jeffs-brain-py-{build}" / "bin" / "memory"
    assert daemon.exists()

    def told(passed: bool, answer: str, hits: list[dict[str, Any]]) -> tuple[Any, ...]:  # noqa: FBT001
        return passed, answer, [hit["score"] for hit in hits]

    mine = {q["id"]: told(q["passed"], q["answer"], q["ranking"]) for q in ours["questions"]}
    theirs = _their_questions(workspace / "theirs", daemon)
    assert len(theirs) == 100
    assert mine == {q["id"]: told(q["passed"], q["answer"], q["citations"]) for q in theirs}
