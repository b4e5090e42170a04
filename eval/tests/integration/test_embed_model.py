"""`run --embed-model`: the model that a daemon asks the scripted upstream for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.upstream.embedders import BGE, served_models
from tests.conftest import CHECKOUT, Ended

Call = Callable[..., Ended]

_RUN = ("run", "--sdk", str(CHECKOUT / "sdks" / "py"), "--upstream", "scripted")
_SEARCH = ("--scenario", "search-retrieve-only", "--mode", "hybrid")


@pytest.fixture(autouse=True)
def built(cache: Path) -> None:
    del cache


def test_daemon_asks_for_the_model_whatever_the_case_of_its_name(memconform: Call) -> None:
    data = ("--data", "smoke", "--seed-reference-brain", *_SEARCH)
    ended = memconform(*_RUN, *data, "--embed-model", "FH256-1")
    assert ended.code == 0, ended.err
    variables = ended.result["provenance"]["settings"]["variables"]
    assert variables["JB_EMBED_MODEL"] == "fh256-1"


def test_env_takes_precedence(memconform: Call) -> None:
    data = ("--data", "smoke", "--seed-reference-brain", *_SEARCH)
    ended = memconform(*_RUN, *data, "--embed-model", "fh256-1", "--env", "JB_EMBED_MODEL=gpt-9")
    assert (ended.code, "unknown embedding model 'gpt-9'" in ended.err) == (3, True), ended.err


@pytest.mark.skipif(
    BGE not in served_models(), reason="bge-small-en-v1.5 is not installed: run make models"
)
def test_lme_passes_its_floor_with_a_trained_model(memconform: Call) -> None:
    """A command of the README, for one SDK: 88 of 90 pass here, 64 with the feature hash."""
    # A busy machine needs longer than 30 s for the first request, which brings all documents.
    patient = ("--timeout-first", "300", "--env", "JB_UPSTREAM_TIMEOUT=300")
    ended = memconform(*_RUN, "--data", "lme", *_SEARCH, "--embed-model", BGE, *patient)
    assert ended.code == 0, ended.err
    assert ended.result["pass_rate"] >= 0.9
