"""`run --sdk a --sdk b`: what fails on one SDK leaves the result of the other whole."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_CLAIMS = 'modes = ["auto", "bm25"]'
_FAILING = {
    "build": ('[build]\ncommand = ["false"]\ninputs = ["sdk.toml"]\n', "", 3, "build_failed"),
    "start": ("", "exits", 3, "daemon_exited"),
    "seed": ("", "brain_500", 3, "seed_failed"),
    "claim": ("", "", 2, "mode_not_claimed"),
    "mode": ("", "mode_not_served", 3, "claim_refuted"),
}
"""More of the manifest, the daemon's fault, the exit code, and what is said."""


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("stage", _FAILING)
def test_an_sdk_that_fails_leaves_the_result_of_the_other(
    memconform: Call,
    scripted: Scripted,
    dataset: Path,
    workspace: Path,
    stage: str,
    *,
    is_first: bool,
) -> None:
    tables, fault, code, cause = _FAILING[stage]
    good = workspace / "good" / "sdk.toml"
    good.parent.mkdir()
    good.write_text(scripted().read_text().replace('"scripted"', '"good"', 1))
    bad = scripted(fault, on="What")
    text = bad.read_text()
    if stage == "claim":
        text = text.replace(_CLAIMS, 'modes = ["auto"]')
    bad.write_text(text + tables)
    first, second = (bad, good) if is_first else (good, bad)
    ended = memconform(
        *("run", "--sdk", first, "--sdk", second, "--dataset", dataset, "--scorer", "exact"),
        *("--mode", "bm25", "--scenario", "search-retrieve-only", "--seed-reference-brain"),
        *("--json", "all.json"),
    )
    assert ended.code == code, ended.err
    [path] = (ended.folder / "results").glob("2*/good.json")
    result = json.loads(path.read_text())
    assert (result["passed"], result["total"], result["incident"]) == (12, 12, None)
    assert cause in ended.err
    report = json.loads((workspace / "all.json").read_text())
    assert report["exit_code"] == code
    assert "good" in {run["sdk"] for run in report["runs"]}
    if stage == "claim":
        [skipped] = report["skipped"]
        assert skipped["reason"].startswith("mode_not_claimed: scripted does not claim mode bm25")


def test_an_sdk_that_is_alone_fails_as_a_usage_error(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = memconform("run", "--sdk", scripted(), "--dataset", dataset, "--mode", "hybrid")
    assert ended.code == 2
    assert "it claims auto, bm25" in ended.err
    assert not list((ended.folder / "results").glob("2*/*.json"))
