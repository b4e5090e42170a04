"""A daemon of another dialect that already runs is measured as one that memconform starts."""

import asyncio
import json
import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.raw_http import serving
from tests.conftest import Ended
from tests.fakes.foreign import DIALECT, ForeignDaemon
from tests.integration.test_dialects import inline

Call = Callable[..., Ended]

_RUN = (
    *("--dataset", "smoke", "--seed-reference-brain", "--scenario", "search-retrieve-only"),
    *("--mode", "bm25", "--floor", "0.5"),
)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """The address of a running daemon with another dialect."""
    async with serving(ForeignDaemon().answer, "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def dialect(workspace: Path) -> str:
    """A file with that dialect, as `doctor` prints its lines."""
    path = workspace / "foreign.toml"
    path.write_text(f"dialect = {inline(DIALECT | {'seed_via': 'documents'})}\n")
    return path.name


@pytest.fixture
def manifest(workspace: Path, url: str) -> str:
    """A manifest of that daemon, with its claims."""
    path = workspace / "sdk.toml"
    path.write_text(
        f'name = "running"\nlanguage = "python"\ndialect = {inline(DIALECT)}\n'
        f'[serve]\nurl = "{url}"\n[seed]\nvia = "documents"\n'
        '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["bm25"]\n'
    )
    tomllib.loads(path.read_text())
    return path.name


def _results(ended: Ended) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (ended.folder / "results").glob("2*/*.json")]


@pytest.mark.capability("dialects")
async def test_a_running_daemon_is_measured_in_its_dialect(
    memconform: Call, url: str, dialect: str
) -> None:
    ended = await asyncio.to_thread(
        memconform, "run", "--sdk", f"url:{url},dialect={dialect}", *_RUN
    )
    assert ended.code == 0, ended.out + ended.err
    assert "all 20 documents proven searchable (bm25)" in ended.out + ended.err
    [result] = _results(ended)
    assert result["served_modes"] == {"bm25": 20}


@pytest.mark.parametrize("verb", ["run", "doctor", "bench", "conform"])
async def test_verbs_take_the_manifest_of_a_running_daemon(
    memconform: Call, manifest: str, verb: str
) -> None:
    flags = {
        "run": _RUN,
        "bench": ("--modes", "bm25", "--limit", "5"),
        "conform": ("--case", "health"),
        "doctor": (),
    }
    ended = await asyncio.to_thread(memconform, verb, "--sdk", manifest, *flags[verb])
    assert "running" in ended.out + ended.err
    assert "no_version" not in ended.out + ended.err
    assert ended.code == 0, ended.out + ended.err


async def test_a_dialect_that_does_not_fit_measures_nothing(memconform: Call, url: str) -> None:
    ended = await asyncio.to_thread(
        memconform, "run", "--sdk", f"url:{url},dialect=jeffs-brain", *_RUN
    )
    assert ended.code == 3, ended.out
    assert "seed_failed" in ended.err
    assert "404" in ended.err
    [result] = _results(ended)
    assert result["pass_rate"] is None


async def test_what_needs_a_daemon_of_ours_is_refused_for_a_running_one(
    memconform: Call, manifest: str
) -> None:
    for flags, says in (
        (("--env", "A=b"), "works only for daemons that memconform starts"),
        (("--upstream", "scripted"), "set its models where you start it"),
    ):
        ended = await asyncio.to_thread(memconform, "run", "--sdk", manifest, *_RUN, *flags)
        assert ended.code == 2
        assert says in ended.err
