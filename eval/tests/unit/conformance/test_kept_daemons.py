"""Which daemons `conform --keep` keeps, and what it says about the others."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from memconform.conformance.catalog import catalog
from memconform.conformance.fixture import Fixture
from memconform.conformance.kept_daemons import MOST_KEPT, KeptDaemons
from memconform.conformance.results import CaseResult, Cause, Check, Result
from memconform.errors import DaemonError

_ENTRY = next(entry for entry in catalog() if entry.id == "doc-rename-over")


@dataclass
class _Runner:
    managed: bool = True


@dataclass
class _Daemon:
    base_url: str = "http://127.0.0.1:2000"


@dataclass
class _Fixture:
    """Stands for a fixture; `lost` is why its daemon cannot be restored, `left` what it leaves."""

    kept_brains: dict[str, str] = field(default_factory=dict)
    runner: _Runner = field(default_factory=_Runner)
    daemon: _Daemon = field(default_factory=_Daemon)
    addresses: set[str] = field(default_factory=lambda: {"http://127.0.0.1:1"})
    lost: str = ""
    left: str = ""
    closed: bool = False

    async def restore(self) -> None:
        if self.lost:
            raise DaemonError(self.lost, code="daemon_exited", hint="see its log")

    async def close(self) -> None:
        self.closed = True
        if self.left:
            raise DaemonError(self.left, code="daemon_left_over", hint="end it")


async def _take(kept: KeptDaemons, fixture: _Fixture, *, is_main: bool = False) -> bool:
    return await kept.take("mine", cast("Fixture", fixture), [_ENTRY], is_main=is_main)


def _failed() -> _Fixture:
    return _Fixture(kept_brains={_ENTRY.id: "mc-doc-rename-over"})


async def test_daemons_of_failed_cases_and_the_main_one_are_kept() -> None:
    async with KeptDaemons() as kept:
        assert await _take(kept, _failed())
        assert await _take(kept, _Fixture(), is_main=True)
        assert not await _take(kept, _Fixture())
        # A daemon that runs anyway is kept only for what the cases left on it.
        foreign = _Fixture(runner=_Runner(managed=False))
        assert not await _take(kept, foreign, is_main=True)
        assert len(kept.daemons()) == 2
        assert kept.hints() == []


async def test_daemons_beyond_the_limit_are_stopped_and_counted() -> None:
    async with KeptDaemons() as kept:
        taken = [await _take(kept, _failed()) for _ in range(MOST_KEPT + 2)]
        assert taken == [True] * MOST_KEPT + [False] * 2
        assert kept.hints()[0].startswith("2 more daemons of mine with failing cases were stopped")
        # The limit is one for each SDK.
        assert await kept.take("other", cast("Fixture", _failed()), [_ENTRY], is_main=False)


async def test_a_daemon_that_does_not_start_again_is_reported() -> None:
    async with KeptDaemons() as kept:
        fixture = _failed()
        fixture.lost = "exit status 7"
        assert not await _take(kept, fixture)
        assert kept.daemons() == []
        [hint] = kept.hints()
        assert "a daemon of mine cannot be kept: daemon_exited: exit status 7" in hint


async def test_what_is_kept_is_stopped_before_its_folder_is_tidied(tmp_path: Path) -> None:
    fixture, seen = _failed(), []
    async with KeptDaemons() as kept:
        await _take(kept, fixture)
        kept.at_end(lambda: seen.append((fixture.closed, tmp_path)))
    assert seen == [(True, tmp_path)]


async def test_commands_name_the_address_of_now() -> None:
    check = Check(
        id="doc-rename-over#moved",
        result=Result.FAIL,
        level="must",
        rules=[],
        curl="curl http://127.0.0.1:1/v1/brains -d 127.0.0.1:1",
        causes=[Cause(cause="x", curl="curl http://127.0.0.1:1/healthz")],
    )
    case = CaseResult(case=_ENTRY.id, title="t", checks=[check])
    async with KeptDaemons() as kept:
        assert kept.readdressed("mine", case) == case
        await _take(kept, _failed())
        assert kept.readdressed("other", case) == case
        [now] = kept.readdressed("mine", case).checks
        assert now.curl == "curl http://127.0.0.1:2000/v1/brains -d 127.0.0.1:1"
        assert now.causes[0].curl == "curl http://127.0.0.1:2000/healthz"


async def test_a_daemon_that_leaves_a_process_behind_is_a_problem_also_when_it_was_kept() -> None:
    fixture, other = _failed(), _failed()
    fixture.left = "it left sleep (pid 7) running"
    async with KeptDaemons() as kept:
        await _take(kept, other)
        await _take(kept, fixture)
    assert other.closed
    [problem] = kept.problems
    assert "left sleep (pid 7) running" in problem
