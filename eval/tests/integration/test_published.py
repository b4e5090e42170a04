"""Figures in READMEs are those that are published, and those are what the daemon reaches."""

import importlib.util
import json
from collections.abc import Callable

import pytest

from tests.conftest import CHECKOUT, Ended

_spec = importlib.util.spec_from_file_location("publish", CHECKOUT / "scripts" / "publish.py")
assert _spec is not None
assert _spec.loader is not None
publish = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(publish)


def test_the_table_is_made_from_what_is_published() -> None:
    assert publish.table(publish.published()) in (CHECKOUT / "datasets" / "README.md").read_text()


@pytest.mark.parametrize("mode", ["bm25", "semantic", "hybrid"])
def test_the_daemon_reaches_what_is_published(memconform: Callable[..., Ended], mode: str) -> None:
    ended = memconform(
        *("run", "--sdk", CHECKOUT / "sdks" / "py" / "sdk.toml", "--dataset", "lme"),
        *("--corpus", "lme", "--scorer", "exact", "--mode", mode, "--floor", "0"),
        *("--scenario", "search-retrieve-only"),
    )
    published = json.loads((CHECKOUT / "results" / "published" / f"lme-py-{mode}.json").read_text())
    result = ended.result
    assert (result["passed"], result["total"]) == (published["passed"], published["total"])
    assert result["provenance"]["dataset_sha256"] == published["dataset_sha256"]
