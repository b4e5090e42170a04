"""A secret that daemons tell all the time is in no file and on no stream of any verb."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_CANARY = "canary-0123456789-token"

_RUN = (
    *("--dataset", "boxes.jsonl", "--scorer", "exact", "--mode", "bm25"),
    *("--scenario", "search-retrieve-only", "--seed-reference-brain", "--log-level", "debug"),
)


@pytest.fixture
def leaking(
    scripted: Scripted, dataset: Path, environment: dict[str, str], workspace: Path
) -> list[str]:
    """Two SDKs whose daemons tell a secret that they were given."""
    environment["CANARY_TOKEN"] = _CANARY
    del dataset
    manifest = scripted("leaks_token").read_text()
    manifest = manifest.replace("[ready]", '[env]\npass = ["CANARY_TOKEN"]\n[ready]')
    paths = []
    for name in ("one", "other"):
        path = Path(f"{name}.toml")
        paths.append(str(path))
        (workspace / path).write_text(manifest.replace('"scripted"', f'"{name}"', 1))
    return paths


def _leaks(folder: Path, ended: Sequence[Ended]) -> list[str]:
    """Where the secret stands."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "state" not in path.parts
    }
    streams = {f"stdout {n}": call.out.encode() for n, call in enumerate(ended)}
    streams |= {f"stderr {n}": call.err.encode() for n, call in enumerate(ended)}
    canary = _CANARY.encode()
    return [name for name, content in (files | streams).items() if canary in content]


@pytest.mark.exhaustive
def test_every_verb_masks_what_a_daemon_reveals(
    memconform: Call, leaking: list[str], workspace: Path
) -> None:
    """Queries in the results of bench were written as they came."""
    one, other = leaking
    ended = [
        memconform("doctor", "--sdk", one),
        memconform("run", "--sdk", one, "--sdk", other, *_RUN, "--json", "run.json"),
    ]
    first, second = sorted(
        str(path.relative_to(workspace)) for path in (workspace / "results/runs").iterdir()
    )
    flags = ("--json", "conform.json", "--junit", "junit.xml", "--markdown", "conform.md")
    bench = ("--suite", "sample", "--modes", "bm25", "--limit", "2", "--json", "bench.json")
    ended += [
        memconform("parity", first, second, "--json", "parity.json", "--markdown", "parity.md"),
        memconform("diff", first, second, "--json", "diff.json"),
        memconform("diff", "results"),
        memconform("score", first, "--json", "rescored.json"),
        memconform("conform", "--sdk", one, "--case", "wire-wrong-method*", "--trace", *flags),
        memconform(
            "conform", "--sdk", one, "--case", "wire-unknown-route*", "--trace", "--json", "-"
        ),
        memconform("bench", "--sdk", one, *bench, "--markdown", "bench.md", "--verbose"),
        memconform("fuzz", "--sdk", one, "--sdk", other, "--examples", "3", "--json", "-"),
        memconform("info", "--json", "-"),
    ]
    assert _leaks(workspace, ended) == []
    # It was told, and masked.
    for name in ("run.json", "conform.json", "conform.md", "junit.xml", "bench.json"):
        assert "(hidden)" in (workspace / name).read_text(), name
    assert "(hidden)" in json.dumps([call.err + call.out for call in ended])
