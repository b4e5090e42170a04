"""Which SDKs take part in a replay, and in which mode they are searched."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.cli.lme import sdks
from memconform.cli.lme.sdks import prepare_sdks, retrieval_mode, try_session_filter
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.errors import DaemonError, ExitCode, UsageError

_ALL = (Mode.AUTO, Mode.BM25, Mode.HYBRID, Mode.HYBRID_RERANK)


class _Runner(SdkRunner):
    def __init__(self, name: str, modes: Sequence[Mode] | None) -> None:
        self.name = name
        self.modes = None if modes is None else tuple(modes)

    def serve(self, launch: Launch) -> Any:
        raise NotImplementedError


def _options(**changes: object) -> Any:
    options = {
        "sdk": ("one", "two"),
        "no_skip": False,
        "sdk_port": (),
        "port": 0,
        "env": (),
        "upstream": "own",
        "ingest_mode": "bulk",
        "actor_brain": "mc-b",
        "i_own_this_brain": False,
        "retrieval_mode": None,
        "rank_by": None,
        "actor_filter_question_sessions": "auto",
    }
    return SimpleNamespace(**options | changes)


@pytest.mark.parametrize(
    ("modes", "expected", "reason"),
    [
        ([_ALL, _ALL], Mode.HYBRID_RERANK, "every SDK claims it"),
        ([_ALL, None], Mode.HYBRID_RERANK, "every SDK claims it"),
        ([_ALL, _ALL[:3]], Mode.HYBRID, "hybrid-rerank is not claimed by sdk1"),
        ([_ALL[:2], _ALL[:3]], Mode.BM25, "hybrid is not claimed by sdk0"),
        ([], Mode.HYBRID_RERANK, ""),
    ],
)
def test_the_default_mode_is_the_best_that_every_sdk_claims(
    modes: list[Sequence[Mode] | None], expected: Mode, reason: str
) -> None:
    """The default was hybrid-rerank, which all three public daemons refused."""
    runners = [_Runner(f"sdk{number}", claimed) for number, claimed in enumerate(modes)]
    mode, rule = retrieval_mode(_options(), runners)
    assert mode is expected
    assert reason in rule


def test_a_mode_that_is_asked_for_is_never_replaced() -> None:
    options = _options(retrieval_mode="hybrid")
    assert retrieval_mode(options, [_Runner("one", [Mode.BM25])])[0] is Mode.HYBRID
    with pytest.raises(UsageError, match="no mode in common: hybrid-rerank is not claimed by one"):
        retrieval_mode(_options(), [_Runner("one", [Mode.SEMANTIC])])


def _built(
    monkeypatch: pytest.MonkeyPatch, present: Sequence[SdkRunner], skipped: Sequence[SkippedSdk]
) -> None:
    async def build_sdks(*_: object, **__: object) -> Any:
        return [(runner, runner.name) for runner in present], list(skipped)

    monkeypatch.setattr(sdks, "build_sdks", build_sdks)


async def test_an_sdk_that_cannot_be_asked_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = SkippedSdk("three", DaemonError("no", code="build_failed", hint=""), is_named=True)
    _built(monkeypatch, [_Runner("one", _ALL), _Runner("two", [Mode.BM25])], [broken])
    runners, skipped = await prepare_sdks(_options(retrieval_mode="hybrid"))
    assert [runner.name for runner in runners] == ["one"]
    assert [(sdk.sdk, sdk.exit_code) for sdk in skipped] == [
        *(("three", ExitCode.DAEMON), ("two", ExitCode.USAGE))
    ]
    _built(monkeypatch, [_Runner("two", [Mode.BM25])], [])
    with pytest.raises(UsageError, match="two does not claim mode hybrid"):
        await prepare_sdks(_options(retrieval_mode="hybrid"))


def _probed(monkeypatch: pytest.MonkeyPatch, *, failing: set[str], refusing: set[str]) -> None:
    @asynccontextmanager
    async def daemon_session(
        runner: SdkRunner, *_: object, **__: object
    ) -> AsyncIterator[SdkRunner]:
        if runner.name in failing:
            raise DaemonError("it ended at once", code="daemon_not_ready", hint="")
        yield runner

    async def honours(_: object, runner: SdkRunner, *__: object) -> bool:
        return runner.name not in refusing

    monkeypatch.setattr(sdks, "daemon_session", daemon_session)
    monkeypatch.setattr(sdks, "honours_session_filter", honours)


async def _filtered(folder: Path, *names: str) -> tuple[bool, str]:
    runners = [_Runner(name, _ALL) for name in names]
    return await try_session_filter(_options(), runners, folder, timeouts=Timeouts(), headers={})


async def test_an_sdk_that_does_not_start_ends_no_replay_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The filter was tried on all SDKs first, and the first that failed ended the command."""
    _probed(monkeypatch, failing={"dead"}, refusing={"refuses"})
    honoured, rule = await _filtered(tmp_path, "dead", "well")
    assert honoured
    assert rule.endswith("; dead could not be tried")
    honoured, rule = await _filtered(tmp_path, "dead", "refuses", "well")
    assert not honoured
    assert "refuses does not honour it" in rule
    with pytest.raises(DaemonError, match="it ended at once"):
        await _filtered(tmp_path, "dead")


async def test_two_replays_at_once_do_not_end_each_others_daemons(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With outputs of one name, in two folders, each ended what it took for its own left-overs."""
    _probed(monkeypatch, failing=set(), refusing=set())
    serve = vars(sdks)["daemon_session"]
    seen: list[str] = []
    brains: list[str] = []

    def daemon_session(runner: SdkRunner, launch: Launch, *rest: object, **more: object) -> Any:
        seen.append(launch.run_id)
        return serve(runner, launch, *rest, **more)

    async def honours(_: object, __: object, brain: str, ___: object) -> bool:
        brains.append(brain)
        return True

    monkeypatch.setattr(sdks, "daemon_session", daemon_session)
    monkeypatch.setattr(sdks, "honours_session_filter", honours)
    for parent in ("one", "other"):
        await _filtered(tmp_path / parent / "out", "go", "py")
    assert len(set(seen)) == len(set(brains)) == 4


@pytest.mark.parametrize("brain", ["", "a b", "..", "é", "x" * 129])
async def test_a_brain_that_is_no_id_is_refused_before_anything_is_built(brain: str) -> None:
    """An empty one ended in 70, and others in a failed seeding of each SDK."""
    with pytest.raises(UsageError, match="--actor-brain") as caught:
        await prepare_sdks(_options(actor_brain=brain))
    assert caught.value.code == "bad_brain"
