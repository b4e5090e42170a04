"""Memory systems behind adapters: what is a finding, what is not measured, and what is refused."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memconform.cli.main import cli
from memconform.errors import UsageError
from tests.adapters import write_boxes, write_system


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    err: str
    report: dict[str, Any]


def _bench(folder: Path, *more: str | Path) -> _Ended:
    file = folder / "report.json"
    flags = ("--suite", "file", "--data", write_boxes(folder), "--json", file, "--output", folder)
    ended = CliRunner().invoke(cli, ["bench", *map(str, (*flags, *more))], standalone_mode=False)
    if isinstance(error := ended.exception, UsageError):
        return _Ended(error.exit_code, f"{error.message} {error.hint}", {})
    assert ended.exception is None, ended.exception
    return _Ended(ended.return_value, ended.stderr, json.loads(file.read_text()))


@pytest.mark.parametrize(
    ("search", "finding"),
    [
        ("hits = hits[:2]", {"short": 12, "hits": 24}),
        ("hits = [(id, text.upper(), s) for id, text, s in hits]", {"rewritten": 72}),
        ("hits = [(None, text, s) for id, text, s in hits]", {"rewritten": 0, "found": 12}),
        ("hits = [(None, 'a fact', s) for id, text, s in hits]", {"rewritten": 72, "found": 0}),
        ("hits = hits[::-1] if calls.count(query) > 1 else hits", {"changed": 10}),
        ("hits = hits[1:] if query.startswith('the secret') else hits", {"found": 0}),
    ],
)
def test_what_a_system_does_in_its_own_way_is_a_finding(
    search: str, finding: dict[str, int], tmp_path: Path
) -> None:
    system = write_system(tmp_path / "mine", search=search)
    ended = _bench(tmp_path, "--system", system, "-k", "6")
    assert ended.code == 0, ended.err
    behaviour = ended.report["systems"][0]["behaviour"]
    assert {name: behaviour[name] for name in finding} == finding
    assert ended.report["rows"][0]["not_measured"] == 0


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
def test_a_search_that_fails_is_not_measured(search: str, code: str, tmp_path: Path) -> None:
    """After the probes, with the first question: it is never a low score."""
    system = write_system(tmp_path / "mine", search=f"if query == 'What is box1 ?': {search}")
    ended = _bench(tmp_path, "--system", system, "--system", "flat-bm25")
    assert code in ended.err
    [row, baseline] = ended.report["rows"]
    assert row["not_measured"] >= 1
    assert baseline["not_measured"] == 0
    assert ended.code == 3


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("raise ValueError('full')", "adapter_store_failed"),
        ("os._exit(9)", "adapter_died"),
    ],
)
def test_a_system_that_stores_nothing_has_no_score(store: str, code: str, tmp_path: Path) -> None:
    system = write_system(tmp_path / "mine", store=store)
    ended = _bench(tmp_path, "--system", system)
    assert ended.code == 3
    assert ended.report["systems"][0]["incident"]["code"] == code
    assert ended.report["rows"][0]["views"] == {}


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
def test_a_manifest_that_cannot_be_used_is_named(more: str, said: str, tmp_path: Path) -> None:
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine", more=more))
    assert ended.code == 2
    assert said in ended.err
    assert "system.toml" in ended.err


@pytest.mark.parametrize(("mood", "lost"), [("", 5), ("once", 5), ("lasting", 0)])
def test_what_a_restart_loses_is_a_finding(mood: str, lost: int, tmp_path: Path) -> None:
    """Also of a system that does not start again, whose second user is measured all the same."""
    system = write_system(tmp_path / "mine", more=f'[settings]\nmood = "{mood}"\n')
    ended = _bench(tmp_path, "--system", system)
    assert ended.code == 0, ended.err
    behaviour = ended.report["systems"][0]["behaviour"]
    assert (behaviour["restarted"], behaviour["lost"]) == (5, lost)
    assert (ended.report["rows"][0]["queries"], ended.report["rows"][0]["not_measured"]) == (12, 0)


def test_an_item_of_another_user_is_a_leak(tmp_path: Path) -> None:
    leak = "hits[-1:] = [(i.id, i.text, 0.1) for u in users if u != user for i in users[u][:1]]"
    system = write_system(
        tmp_path / "mine",
        search=f"if query[0] == 'W': {leak}",
        more='[settings]\nmood = "lasting"\n',
    )
    ended = _bench(tmp_path, "--system", system, "-k", "6")
    behaviour = ended.report["systems"][0]["behaviour"]
    # The first of the two users is asked before there is another.
    assert behaviour["leaks"] == ended.report["rows"][0]["not_measured"] == 6
    assert "foreign_id" in ended.err
    assert ended.code == 3


def test_a_system_that_nobody_knows_is_named(tmp_path: Path) -> None:
    ended = _bench(tmp_path, "--system", "fais")
    assert ended.code == 2
    assert "did you mean 'faiss'?" in ended.err
