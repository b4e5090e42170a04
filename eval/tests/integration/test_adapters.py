"""Memory systems behind adapters, measured by the installed program."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.adapters.program import known_systems
from tests.adapters import write_boxes, write_system
from tests.conftest import CHECKOUT, Ended
from tests.program import PROGRAM

Call = Callable[..., Ended]


@pytest.mark.capability("adapters")
def test_a_system_is_measured_beside_a_baseline(memconform: Call, workspace: Path) -> None:
    system = write_system(workspace / "mine", more='[settings]\nmood = "lasting"\n')
    data = write_boxes(workspace)
    flags = ("--system", system, "--system", "flat-bm25", "--json", "report.json")
    ended = memconform("bench", "--suite", "file", "--data", data, *flags)
    assert ended.code == 0, ended.err
    report = json.loads((workspace / "report.json").read_text())
    metrics = {row["system"]: row["views"]["all"]["metrics"] for row in report["rows"]}
    found = {name: each["recall_any@5"]["value"] for name, each in metrics.items()}
    assert found == {"mine": 100, "flat-bm25": 100}
    [mine] = [each for each in report["systems"] if each["name"] == "mine"]
    assert (mine["version"], mine["variables"]) == ("1.0", {"mood": "lasting"})
    assert mine["behaviour"] == {
        "sent": 12,
        "probed": 12,
        "found": 12,
        "hits": 72,
        "of_no_item": 0,
        "rewritten": 0,
        "searches": 12,
        "short": 0,
        "repeated": 10,
        "changed": 0,
        "leaks": 0,
        "restarted": 5,
        "lost": 0,
        "model_calls": None,
        "stand_ins": None,
        "adapter_lines": 30,
        "licence": "MIT",
    }
    assert "lost by a restart" in ended.err
    assert "beside flat-bm25" in ended.err
    [pair] = report["with_bm25"]
    assert (pair["first"], pair["second"]) == ("mine", "flat-bm25")
    # Both find all, though not in the same order.
    assert (pair["contrast"]["both"], pair["contrast"]["verdict"]) == (12, "inconclusive")
    # Nothing is claimed of a system that nobody can know.
    assert "equal scores by the reversed argsort: flat-bm25\n" in ended.err
    [log] = ended.folder.glob("results/runs/*/mine/adapter.log")
    assert not list(log.parent.glob("state*"))


_ASKS_FOR_MEMORIES = """
import json
from urllib.request import Request, urlopen
heads = ("Summary", "Last k Messages", "Recently Extracted Memories", "Existing Memories")
prompt = "".join(f"## {head}\\n\\n" for head in heads)
prompt += "## New Messages\\nuser: a box\\n\\n## Observation Date\\n1\\n\\n## Current Date\\n1"
body = json.dumps({"messages": [{"role": "user", "content": prompt}]})
for _ in items:
    urlopen(Request(os.environ["MODELS"], body.encode(), {"Content-Type": "application/json"}))
"""


def test_calls_that_no_model_answered_are_counted(memconform: Call, workspace: Path) -> None:
    table = '[upstream.scripted]\nMODELS = "{upstream}/v1/chat/completions"\n'
    asks = _ASKS_FOR_MEMORIES.strip().replace("\n", "\n    ")
    system = write_system(workspace / "mine", store=asks, more=f"lacks_model = true\n{table}")
    flags = ("--system", system, "--upstream", "scripted", "--json", "report.json")
    ended = memconform("bench", "--suite", "file", "--data", write_boxes(workspace), *flags)
    assert ended.code == 0, ended.err
    [seen] = json.loads((workspace / "report.json").read_text())["systems"]
    assert (seen["behaviour"]["model_calls"], seen["behaviour"]["stand_ins"]) == (12, 12)
    assert "12, 12 by a stand-in" in ended.err
    assert "model=none" in ended.err


_LIGHT = ("faiss",)
_PLAIN = (*_LIGHT, "qdrant", "chroma", "langgraph", "lancedb", "llamaindex")
"""Stores that rank by the similarity of the vectors alone."""


@pytest.mark.timeout(1_200)  # packages of up to 1.4 GB are installed
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name in _LIGHT else pytest.mark.slow)
        for name in known_systems(CHECKOUT)
    ],
)
def test_a_system_that_ships_is_measured(name: str, cache: Path, workspace: Path) -> None:
    data = write_boxes(workspace)
    flags = ("--upstream", "scripted", "--embed-model", "fh256-1", "-k", "1,5")
    system = CHECKOUT / "sdks" / "adapters" / name
    # With a network, from which its packages are installed.
    ended = subprocess.run(
        [
            *(PROGRAM, "bench", "--suite", "file", "--data", data, "--json", "report.json"),
            *(*flags, "--system", system, "--system", "flat-dense"),
        ],
        cwd=workspace,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads((workspace / "report.json").read_text())
    row, dense = report["rows"]
    if name == "hindsight" and os.geteuid() == 0:
        assert (ended.returncode, row["measured"]) == (3, False)
        assert "not_as_root" in ended.stderr
        return
    assert ended.returncode == 0, ended.stderr
    behaviour = report["systems"][0]["behaviour"]
    assert behaviour["sent"] == behaviour["probed"] == behaviour["found"] == 12
    assert behaviour["of_no_item"] == behaviour["rewritten"] == behaviour["leaks"] == 0
    # A vector for each search, at least, unless it searches by words alone.
    searches = behaviour["probed"] + behaviour["searches"]
    if name == "server-memory":
        assert behaviour["model_calls"] == 0
    else:
        assert behaviour["model_calls"] >= searches
    if name in _PLAIN:
        # Two of the twelve questions tie, and either item may come first.
        first, exact = (each["views"]["all"]["metrics"]["recall_any@1"] for each in (row, dense))
        assert first["value"] >= exact["value"] - 100 / 12
