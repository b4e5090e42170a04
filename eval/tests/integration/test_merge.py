"""`plan` and `merge` with every command that can be divided, as the installed program."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adapters import write_system
from tests.conftest import Ended
from tests.integration.lme_replay import BULK, FAKE, NO_FILTER, write_sdk
from tests.lme_data import write_dataset
from tests.merged_results import comparable
from tests.unit.wmb_files import questions, write_benchmark

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_GROUPS = 5


@pytest.fixture
def boxes(workspace: Path) -> Path:
    """Haystacks of two items with a question each."""
    items = [
        {"id": f"i{n}", "content": f"The secret of box{n} is word{n}x", "group": f"g{n % _GROUPS}"}
        for n in range(2 * _GROUPS)
    ]
    asked = [
        {"query": f"What is in box{n}?", "gold": [f"i{n}"], "group": f"g{n % _GROUPS}"}
        for n in range(2 * _GROUPS)
    ]
    path = workspace / "boxes.json"
    path.write_text(json.dumps({"name": "boxes", "items": items, "questions": asked}))
    return path


def _divide(memconform: Call, of: int, *command: str | Path) -> list[str]:
    """Do the work of each shard into a folder of its own."""
    folders = [f"part-{number}" for number in range(1, of + 1)]
    for number, folder in enumerate(folders, start=1):
        ended = memconform(*command, "--shard", f"{number}/{of}", "--output", folder)
        assert ended.code == 0, ended.err
    return folders


def _only(folder: Path, name: str = "result.json") -> Path:
    [path] = (folder / "runs").glob(f"*/{name}")
    return path


@pytest.mark.capability("plan")
@pytest.mark.parametrize("index", ["isolated", "shared"])
def test_the_shards_of_a_bench(
    memconform: Call, workspace: Path, scripted: Scripted, boxes: Path, index: str
) -> None:
    write_system(workspace / "mine")
    command: tuple[str | Path, ...]
    command = ("bench", "--suite", "file", "--data", boxes, "--index", index, "--sdk", scripted())
    command += ("--system", "flat-bm25", "--system", "mine")
    planned = memconform("plan", "--shards", "3", "--json", "-", *command)
    assert planned.code == 0, planned.err
    rows = json.loads(planned.out)["include"]
    assert [row["shard"] for row in rows] == ["1/3", "2/3", "3/3"]
    counts = {"haystacks": 5, "queries": 10, "items": 10} if index == "isolated" else {}
    counts = counts or {"questions": 10}
    assert {name: sum(row[name] for row in rows) for name in counts} == counts
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-3)
    whole = memconform(*command, "--output", "whole")
    assert whole.code == 0, whole.err
    parts = _divide(memconform, 3, *command)
    merged = memconform("merge", *parts, "--output", "merged")
    assert merged.code == 0, merged.err
    one, other = _only(workspace / "whole"), _only(workspace / "merged")
    assert comparable(other) == comparable(one)
    # It is a result as any other: it can be compared with the whole one, and shown.
    again = memconform("diff", one, other)
    assert again.code == 0, again.err
    # A shard says that it is one.
    part = _only(workspace / parts[1])
    refused = memconform("parity", part, other)
    assert (refused.code, "are of shard 2 of 3 and the whole" in refused.err) == (2, True)
    shown = memconform("report", part, "--format", "markdown", "-o", "-")
    assert "is shard 2 of 3 alone" in shown.out


def test_a_system_that_fails_in_a_shard_has_no_score_in_the_whole(
    memconform: Call, workspace: Path, scripted: Scripted, boxes: Path
) -> None:
    sdk = scripted("dies", on="box3?")
    command = ("bench", "--suite", "file", "--data", boxes, "--sdk", sdk, "--system", "flat-bm25")
    codes = []
    for number in (1, 2):
        part = memconform(*command, "--shard", f"{number}/2", "--output", f"part-{number}")
        codes.append(part.code)
    assert sorted(codes) == [0, 3]
    merged = memconform("merge", "part-1", "part-2", "--output", "merged")
    assert merged.code == 3, merged.err
    report = json.loads(_only(workspace / "merged").read_text())
    rows: dict[str, Any] = {row["system"]: row for row in report["rows"]}
    assert (rows["scripted"]["measured"], rows["scripted"]["views"]) == (False, {})
    died = codes.index(3) + 1
    assert f"shard {died} of 2: " in rows["scripted"]["why"][0]
    assert rows["flat-bm25"]["measured"]


@pytest.mark.capability("merge")
def test_the_shards_of_a_run_with_several_sdks(
    memconform: Call, workspace: Path, dataset: Path
) -> None:
    sdks = [write_sdk(workspace, name) for name in ("one", "two")]
    command = ("run", *(part for sdk in sdks for part in ("--sdk", sdk)), "--data", dataset)
    command += ("--scenario", "search-retrieve-only", "--mode", "bm25")
    parts = _divide(memconform, 2, *command)
    whole = memconform(*command, "--json", "whole.json", "--output", "whole")
    merged = memconform("merge", *parts, "--output", "merged", "--json", "merged.json")
    assert (merged.code, whole.code) == (0, 0), merged.err
    assert "one: 12/12 pass_rate=1.0000" in merged.out
    assert "one, two: rankings equal 12/12" in merged.out
    assert comparable(workspace / "merged.json") == comparable(workspace / "whole.json")
    results = sorted((workspace / "merged").glob("*/*.json"))
    assert [path.name for path in results] == ["one.json", "two.json"]
    compared = memconform("parity", *results)
    assert compared.code == 0, compared.err


def test_the_shards_of_a_replay(
    memconform: Call, workspace: Path, environment: dict[str, str]
) -> None:
    write_dataset(workspace / "lme.json", questions=5)
    sdks = [write_sdk(workspace, name) for name in ("one", "two")]
    named = [part for sdk in sdks for part in ("--sdk", sdk)]
    command = ("lme", "tri", *BULK, *FAKE, *NO_FILTER, *named)
    for name in ("whole", "parts"):
        # Each pays for its own replies.
        environment["MEMCONFORM_CACHE"] = str(workspace / name / "cache")
        if name == "whole":
            assert memconform(*command, "--output", "whole/out").code == 0
    parts = _divide(memconform, 3, *command)
    merged = memconform("merge", *parts, "--output", "merged", "--json", "merged.json")
    assert merged.code == 0, merged.err
    for file in ("result-one.json", "result-two.json", "parity.json"):
        whole = workspace / "whole" / "out" / file
        assert comparable(workspace / "merged" / file) == comparable(whole)
    taken = memconform("merge", *parts, "--output", "merged")
    assert (taken.code, "output_taken" in taken.err) == (2, True)
    one_missing = memconform("merge", *parts[:2], "--output", "fewer")
    assert (one_missing.code, "no part has shard 3/3" in one_missing.err) == (2, True)
    assert not (workspace / "fewer").exists()


def test_the_shards_of_a_run_of_wmb(memconform: Call, workspace: Path, scripted: Scripted) -> None:
    data = write_benchmark(workspace / "wmb", questions(scored=4, probes=4, analysed=1))
    command = ("wmb", "run", "--data", data, "--sdk", scripted(), "-k", "3")
    assert memconform(*command, "--output", "whole").code == 0
    parts = _divide(memconform, 3, *command)
    merged = memconform("merge", *parts, "--output", "merged")
    assert merged.code == 0, merged.err
    for name in ("answers.run.json", "result.json"):
        whole = comparable(_only(workspace / "whole", name))
        assert comparable(_only(workspace / "merged", name)) == whole
    rows = json.loads(_only(workspace / "merged", "answers.json").read_text())
    expected = json.loads(_only(workspace / "whole", "answers.json").read_text())
    for row, other in zip(rows, expected, strict=True):
        assert row["memories_returned"] == other["memories_returned"]
        assert row["question_id"] == other["question_id"]
        assert row["memconform"]["asked"] == other["memconform"]["asked"]


def test_the_shards_of_a_conformance_run(
    memconform: Call, workspace: Path, scripted: Scripted
) -> None:
    """A known failure that occurs no more is stale once all cases have run, and not before."""
    known = workspace / "known.yaml"
    known.write_text(
        "- cause: 'something that never happens'\n  reason: it did once\n"
        "  link: https://example.org/1\n  expires: '2999-01-01'\n"
    )
    cases = [part for glob in ("brain-create", "version*") for part in ("--case", glob)]
    command = ("conform", "--sdk", scripted(), *cases, "--known", known)
    whole = memconform(*command, "--output", "whole")
    codes = [
        memconform(*command, "--shard", f"{number}/2", "--output", f"part-{number}").code
        for number in (1, 2)
    ]
    merged = memconform("merge", "part-1", "part-2", "--output", "merged")
    assert merged.code == whole.code, (merged.err, codes)
    one, other = (_only(workspace / name, "conform.json") for name in ("whole", "merged"))
    assert comparable(other) == comparable(one)
    shown = memconform("conform", "findings", _only(workspace / "merged", "conform.json").parent)
    assert shown.code in (0, 1), shown.err


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("plan", "--shards", "2", "run", "--sdk", "x", "--shard", "1/2"), 2, "plan shows all"),
        (("plan", "--shards", "99", "run", "--sdk", "x", "--data", "smoke"), 2, "too_many_shards"),
        (("plan", "--shards", "2", "run", "--sdk", "x", "--dta", "smoke"), 2, "--dta"),
        (("plan", "--shards", "2", "run", "--help"), 2, "cannot be divided"),
        (("plan", "--shards", "2", "conform", "list"), 2, "cannot be divided"),
        (("plan", "--shards", "2", "mutate"), 2, "mutate"),
        (("plan", "run", "--sdk", "x"), 2, "--shards"),
        (("merge", "nowhere", "--output", "out"), 2, "nowhere"),
        (("merge", "empty", "--output", "out"), 4, "no result of a shard"),
        (("merge", "other.json", "--output", "out"), 2, "other.json"),
        (("merge", "parity.json", "--output", "out"), 2, "memconform parity"),
        (("run", "--sdk", "x", "--shard", "3/2"), 2, "3/2"),
        (("run", "--sdk", "x", "--shards", "2"), 2, "--shards is for --executor"),
        (("run", "--sdk", "x", "--data", "smoke", "--shard", "1/21"), 2, "too_many_shards"),
    ],
)
def test_what_cannot_be_divided_or_joined(
    memconform: Call, workspace: Path, command: tuple[str, ...], code: int, message: str
) -> None:
    (workspace / "empty").mkdir()
    (workspace / "other.json").write_text("{}")
    schema = {"schema_version": "memconform/parity-report@1"}
    (workspace / "parity.json").write_text(json.dumps(schema))
    ended = memconform(*command)
    assert ended.code == code, ended.err
    assert message in ended.err
    assert not (workspace / "out").exists()
