"""Memory systems behind adapters: what is measured, what is a finding, and what is neither."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended

Call = Callable[..., Ended]

_ADAPTER = """
import os
import sys
import time

users = {}
calls = []

def start(folder, settings):
    global mood
    (folder / "file").write_text("state")
    mood = settings.get("mood", "")

def store(user, items):
    STORE
    users.setdefault(user, []).extend(items)

def search(user, query, k):
    words = set(query.lower().replace("?", "").split())
    ranked = sorted(users[user], key=lambda item: -len(words & set(item.text.lower().split())))
    hits = [(item.id, item.text, 1.0) for item in ranked[:k]]
    calls.append(query)
    SEARCH
    return hits
"""
_PROBES = 12
"""Searches by their own words that come before the questions."""


@pytest.fixture
def boxes(workspace: Path) -> Path:
    """Two haystacks of six items each; the third word of a question is in one item."""
    items = [
        {"id": f"i{n}", "content": f"the secret of box{n} is word{n}x", "group": f"g{n % 2}"}
        for n in range(12)
    ]
    questions = [
        {"query": f"What is box{n} ?", "gold": [f"i{n}"], "group": f"g{n % 2}", "category": "c"}
        for n in range(12)
    ]
    path = workspace / "boxes.json"
    path.write_text(json.dumps({"name": "boxes", "items": items, "questions": questions}))
    return path


def _system(folder: Path, *, store: str = "pass", search: str = "pass", more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    code = _ADAPTER.replace("STORE", store).replace("SEARCH", search)
    (folder / "adapter.py").write_text(code)
    manifest = f'name = "mine"\nversion = "1.0"\nlicence = "MIT"\n{more}'
    (folder / "system.toml").write_text(manifest)
    return folder


def _bench(memconform: Call, data: Path, *more: str | Path) -> tuple[Ended, dict[str, Any]]:
    file = data.with_name("report.json")
    file.unlink(missing_ok=True)
    ended = memconform("bench", "--suite", "file", "--data", data, "--json", file, *more)
    return ended, json.loads(file.read_text()) if file.exists() else {}


@pytest.mark.capability("adapters")
def test_a_system_is_measured_beside_a_baseline(
    memconform: Call, boxes: Path, workspace: Path
) -> None:
    system = _system(workspace / "mine", more='[settings]\nmood = "good"\n')
    ended, report = _bench(memconform, boxes, "--system", system, "--system", "flat-bm25")
    assert ended.code == 0, ended.err
    rows = {row["system"]: row["views"]["all"]["metrics"] for row in report["rows"]}
    assert rows["mine"]["recall_any@5"]["value"] == rows["flat-bm25"]["recall_any@5"]["value"] == 100
    [mine] = [each for each in report["systems"] if each["name"] == "mine"]
    assert (mine["version"], mine["variables"]) == ("1.0", {"mood": "good"})
    assert mine["behaviour"] == {
        **{"sent": 12, "probed": 12, "found": 12, "hits": 72, "rewritten": 0, "searches": 12},
        **{"short": 0, "repeated": 10, "changed": 0, "leaks": 0},
    }
    assert "mine: 12 of 12 items found by their own words" in ended.err
    # Nothing is claimed of a system that nobody can know.
    assert "by the order of the items: flat-bm25" in ended.err
    [log] = ended.folder.glob("results/runs/*/mine/adapter/adapter.log")
    assert not list(log.parents[1].glob("state*"))


@pytest.mark.parametrize(
    ("search", "finding"),
    [
        ("hits = hits[:2]", {"short": 12, "hits": 24}),
        ("hits = [(id, text.upper(), s) for id, text, s in hits]", {"rewritten": 72}),
        ("hits = [(None, text, s) for id, text, s in hits]", {"rewritten": 0, "found": 12}),
        ("hits = [(None, 'a fact', s) for id, text, s in hits]", {"rewritten": 72, "found": 0}),
        ("hits = hits[::-1] if len(calls) % 2 else hits", {"changed": 10}),
        ("hits = hits[1:] if len(calls) <= 12 else hits", {"found": 0}),
    ],
)
def test_what_a_system_does_in_its_own_way_is_a_finding(
    search: str, finding: dict[str, int], memconform: Call, boxes: Path, workspace: Path
) -> None:
    system = _system(workspace / "mine", search=search)
    ended, report = _bench(memconform, boxes, "--system", system, "-k", "6")
    assert ended.code == 0, ended.err
    behaviour = report["systems"][0]["behaviour"]
    assert {name: behaviour[name] for name in finding} == finding
    assert report["rows"][0]["not_measured"] == 0


@pytest.mark.parametrize(
    ("search", "code"),
    [
        ("hits = [('made-up', 'text', 1.0)]", "foreign_id"),
        ("hits = None", "adapter_wrong_type"),
        ("hits = ['text']", "adapter_wrong_type"),
        ("hits = [('i0', None, 1.0)]", "adapter_wrong_type"),
        ("hits = [('i0', 'text', float('nan'))]", "adapter_wrong_type"),
        ("hits = [('i0', 'text', 'high')]", "adapter_wrong_type"),
        ("raise KeyError('x')", "adapter_search_failed"),
        ("sys.exit()", "adapter_search_failed"),
        ("os._exit(9)", "adapter_died"),
    ],
)
def test_a_search_that_fails_is_not_measured(
    search: str, code: str, memconform: Call, boxes: Path, workspace: Path
) -> None:
    """After the probes, with the first question: it is never a low score."""
    system = _system(workspace / "mine", search=f"if query == 'What is box1 ?': {search}")
    ended, report = _bench(memconform, boxes, "--system", system, "--system", "flat-bm25")
    assert code in ended.err
    [row, baseline] = report["rows"]
    assert row["not_measured"] >= 1
    assert baseline["not_measured"] == 0
    assert ended.code == 3


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("raise ValueError('full')", "adapter_store_failed"),
        ("os._exit(9)", "adapter_died"),
        ("time.sleep(3600)", "adapter_hung"),
    ],
)
def test_a_system_that_stores_nothing_has_no_score(
    store: str, code: str, memconform: Call, boxes: Path, workspace: Path
) -> None:
    # short limit: no other call of this adapter takes any time, and this one never ends.
    limit = "timeout_s = 20\n" if code == "adapter_hung" else ""
    system = _system(workspace / "mine", store=store, more=limit)
    ended, report = _bench(memconform, boxes, "--system", system)
    assert ended.code == 3
    assert report["systems"][0]["incident"]["code"] == code
    assert report["rows"][0]["views"] == {}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('python = "four"\n', "python"),
        ('requires = "missing.txt"\n', "missing.txt is not a file"),
        ('[settings]\nurl = "{upstrem}/v1"\n', "upstrem"),
        ('colour = "red"\n', "unknown key"),
        ('[settings]\nurl = "{upstream}/v1"\n', "add --upstream scripted"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_named(
    more: str, said: str, memconform: Call, boxes: Path, workspace: Path
) -> None:
    ended, _ = _bench(memconform, boxes, "--system", _system(workspace / "mine", more=more))
    assert ended.code == 2
    assert said in ended.err
    assert "system.toml" in ended.err


def test_a_system_that_nobody_knows_is_named(memconform: Call, boxes: Path) -> None:
    ended, _ = _bench(memconform, boxes, "--system", "fais")
    assert ended.code == 2
    assert "did you mean 'faiss'?" in ended.err
