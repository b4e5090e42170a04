"""A daemon with another dialect is measured by a file, and its own defects stay errors."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ended
from tests.fakes.foreign import DIALECT

Call = Callable[..., Ended]


def inline(value: object) -> str:
    """A value as TOML writes it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def _result(ended: Ended, sdk: str) -> dict[str, Any]:
    """The last result of an SDK."""
    [path] = (ended.folder / "results").glob(f"2*/{sdk}.json")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


@pytest.fixture
def foreign(workspace: Path) -> Callable[..., Path]:
    """Writes the manifest of a daemon with another dialect."""

    def write(seed: str, *arguments: str, dialect: dict[str, Any] | None = DIALECT) -> Path:
        argv = ["{python}", "-m", "tests.fakes.foreign", "--addr", "{addr}"]
        argv += ["--root", "{state_dir}", *arguments]
        path = workspace / "sdk.toml"
        line = f"dialect = {inline(dialect)}\n" if dialect is not None else ""
        path.write_text(
            f'name = "foreign"\nlanguage = "python"\n{line}'
            f"[serve]\nargv = {json.dumps(argv)}\nport = 'announced'\n[seed]\n{seed}\n"
            '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
        )
        tomllib.loads(path.read_text())
        return path

    return write


_DISK = 'via = "disk"\nfolder = "stores/{brain}"'


@pytest.mark.parametrize(
    ("seed", "arguments"),
    [
        ('via = "documents"', ()),
        ('via = "documents"\nrestart = true', ("--late",)),
        (f"{_DISK}\nrestart = true", ("--late",)),
    ],
)
def test_a_foreign_daemon_is_measured_however_documents_get_in(
    memconform: Call, foreign: Callable[..., Path], seed: str, arguments: tuple[str, ...]
) -> None:
    sdk = foreign(seed, *arguments)
    ended = memconform(
        *("run", "--sdk", sdk, "--dataset", "smoke", "--seed-reference-brain"),
        *("--scenario", "search-retrieve-only", "--mode", "bm25", "--floor", "0.5"),
    )
    assert ended.code == 0, ended.out + ended.err
    assert "20 documents, chunks unknown, vectors unknown" in ended.out + ended.err
    assert "all 20 documents proven searchable (bm25)" in ended.out + ended.err
    result = _result(ended, "foreign")
    assert result["counts"]["daemon_error"] == result["counts"]["protocol_error"] == 0
    assert result["served_modes"] == {"bm25": 20}
    assert result["seeded"]["chunks"] is None
    assert result["daemon"]["version"] is None


def test_an_index_that_needs_a_restart_and_gets_none_is_not_measured(
    memconform: Call, foreign: Callable[..., Path]
) -> None:
    # short limit: without a restart nothing is ever searchable.
    sdk = foreign('via = "documents"\ntimeout_s = 1', "--late")
    ended = memconform("run", "--sdk", sdk, "--dataset", "smoke", "--seed-reference-brain")
    assert ended.code == 3, ended.out
    assert "does not find 20 of 20 ingested documents" in ended.out + ended.err
    assert _result(ended, "foreign")["pass_rate"] is None


def test_an_answer_whose_mode_nothing_confirms_is_unconfirmed_and_compared_with_its_like(
    memconform: Call, foreign: Callable[..., Path], scripted: Callable[..., Path]
) -> None:
    run = (
        "--dataset",
        "smoke",
        "--seed-reference-brain",
        "--scenario",
        "ask-basic",
        "--scorer",
        "exact",
    )
    ended = memconform("run", "--sdk", foreign('via = "documents"'), *run, "--floor", "0")
    assert ended.code == 0, ended.out + ended.err
    assert _result(ended, "foreign")["served_modes"] == {"unconfirmed": 20}
    assert "20 unconfirmed" in ended.out + ended.err
    other = memconform("run", "--sdk", scripted(), *run, "--floor", "0")
    assert other.code == 0, other.out
    ids = [_result(ended, "foreign")["run_id"], _result(other, "scripted")["run_id"]]
    compared = memconform("parity", *ids)
    assert compared.code == 2, compared.out
    assert "no trace confirms the mode in which 'foreign' retrieved" in compared.err
    assert memconform("parity", ids[0], ids[0]).code == 2


def test_doctor_goes_on_past_each_obstacle_and_names_the_line_that_helps(
    memconform: Call, foreign: Callable[..., Path]
) -> None:
    known = {"routes": DIALECT["routes"], "statuses": DIALECT["statuses"], "keys": "pascal"}
    known |= {"request_keys": "snake", "paths": DIALECT["paths"], "events": DIALECT["events"]}
    objects = DIALECT["objects"]
    names = ("create_brain", "search_request", "ask_request", "chunk", "listing", "stat")
    known["objects"] = {name: objects[name] for name in names}
    known["objects"]["brain"] = {"brainId": "Store.Id"}
    known["objects"]["search_response"] = {"chunks": "Result.Hits", "trace": "Debug"}
    ended = memconform("doctor", "--sdk", foreign('via = "documents"', dialect=known))
    block = ended.out.partition("These lines in the sdk.toml would help")[2]
    lines = tomllib.loads(block.partition("\n")[2].rpartition("\n\n")[0])["dialect"]["objects"]
    assert lines["brain"] == dict.fromkeys(("documents", "chunks", "vectors", "pending"), False)
    assert lines["search_response"] == {"tookMs": False}
    assert lines["trace"]["effectiveMode"] is False
    assert lines["retrieve"] == {"topK": False, "mode": False, "trace": False}
    assert "ok   ask                  with that: answered" in ended.out + ended.err
    assert ended.code == 3, ended.out


def test_rising_scores_cost_a_row_only_without_rank_by_position(
    memconform: Call, scripted: Callable[..., Path], dataset: Path
) -> None:
    """Once in 1,981 queries cost one daemon its whole row."""
    run: tuple[str | Path, ...] = ("run", "--sdk", scripted("rising_scores"), "--dataset", dataset)
    run += ("--seed-reference-brain", "--scenario", "search-retrieve-only", "--floor", "0.1")
    strict = memconform(*run)
    assert _result(strict, "scripted")["counts"]["protocol_error"] == 1
    ended = memconform(*run, "--rank-by", "position")
    assert ended.code == 0, ended.out
    result = _result(ended, "scripted")
    assert result["counts"]["protocol_error"] == 0
    assert result["rising_scores"] == 1
    assert "scores rise in 1 ranking (core.search.order)" in ended.out + ended.err
    assert result["provenance"]["settings"]["rank_by"] == "position"
