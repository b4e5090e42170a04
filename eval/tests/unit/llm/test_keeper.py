"""What a keeper keeps for commands elsewhere: each reply is paid for once, within one budget."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memconform.errors import UsageError
from memconform.llm import keeper as keeping
from memconform.llm.budget import Ledger
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import BudgetSpentError, LedgerError
from memconform.llm.keeper import Keeper
from memconform.llm.kept import KEEPER_VARIABLE, KeptCache, open_cache, open_ledger

_KEY = "a" * 64
_REPLY = CachedReply("text", "model-1")


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "cache"))
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        monkeypatch.setenv(KEEPER_VARIABLE, f"{nobody.getsockname()[1]}:secret")


@asynccontextmanager
async def _kept(contexts: Path | None = None) -> AsyncIterator[Keeper]:
    """A keeper behind a port, as a worker has it."""
    keeper = Keeper(Ledger(), contexts)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secret, _, line = (await reader.readline()).partition(b" ")
        assert secret == b"secret"
        writer.write(await keeper.answer(line))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", _port()):
        yield keeper


def _port() -> int:
    return int(os.environ[KEEPER_VARIABLE].partition(":")[0])


async def test_equal_calls_of_two_commands_are_made_once() -> None:
    """Shards that extract the facts of one session at the same time each paid for them."""
    async with _kept():
        first, second = open_cache(), open_cache()
        assert await first.claim(_KEY) is None
        waiting = asyncio.create_task(second.claim(_KEY))
        # Another call does not wait.
        assert await second.claim("b" * 64) is None
        assert not waiting.done()
        first.write(_KEY, _REPLY)
        assert await waiting == _REPLY
        assert await asyncio.to_thread(second.read, _KEY) == _REPLY
    # It is in the cache of this machine.
    assert ReplyCache().read(_KEY) == _REPLY


async def test_a_call_that_fails_is_made_by_whoever_waits() -> None:
    async with _kept():
        cache = open_cache()
        assert await cache.claim(_KEY) is None
        waiting = [asyncio.create_task(cache.claim(_KEY)) for _ in range(2)]
        cache.release(_KEY)
        done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in done] == [None]
        cache.release(_KEY)
        assert [await task for task in left] == [None]


async def test_a_command_that_died_holds_up_nobody_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeping, "_LEASE_SECONDS", 0.0)
    async with _kept():
        assert await open_cache().claim(_KEY) is None
        assert await open_cache().claim(_KEY) is None
        # Nor does the money that it had reserved.
        await open_ledger(1e-9).acquire(1)
        with pytest.raises(BudgetSpentError):
            await open_ledger(1e-9).acquire(1)


async def test_commands_share_one_budget() -> None:
    async with _kept():
        one, two = open_ledger(100e-9), open_ledger(100e-9)
        await one.acquire(60)
        # It waits for what the other one gives back.
        waiting = asyncio.create_task(two.acquire(70))
        await asyncio.sleep(0)
        assert not waiting.done()
        one.settle(60, 30)
        await waiting
        two.settle(70, 70)
        with pytest.raises(BudgetSpentError, match=r"\$0.0000 of \$0.0000 is spent") as caught:
            await one.acquire(1)
        assert (caught.value.code, "--max-cost-usd" in str(caught.value.hint)) == (
            "budget_spent",
            True,
        )
        assert await asyncio.to_thread(lambda: one.committed) == 100
        # What costs nothing needs no keeper.
        await one.acquire(0)
        one.settle(0, 0)
        # Another budget than that of the first call: whoever continues may have a larger one.
        await open_ledger(200e-9).acquire(100)


async def test_replies_of_a_folder_of_their_own(tmp_path: Path) -> None:
    async with _kept(tmp_path / "contexts"):
        cache = open_cache(tmp_path / "contexts")
        assert await cache.claim(_KEY) is None
        cache.write(_KEY, _REPLY)
        assert await cache.claim(_KEY) == _REPLY
        assert await open_cache().claim(_KEY) is None
        # A folder that the command line of the keeper does not name is no place to write to.
        open_cache(tmp_path / "elsewhere").write("c" * 64, _REPLY)
        assert await open_cache().claim("c" * 64) == _REPLY
    assert ReplyCache(tmp_path / "contexts").read(_KEY) == _REPLY
    assert not (tmp_path / "elsewhere").exists()


async def test_without_a_keeper_nothing_is_spent() -> None:
    cache, ledger = open_cache(), open_ledger(1.0)
    assert isinstance(cache, KeptCache)
    assert (await cache.claim(_KEY), cache.read(_KEY)) == (None, None)
    cache.write(_KEY, _REPLY)
    with pytest.raises(LedgerError, match="keeps the budget does not answer"):
        await ledger.acquire(1)
    with pytest.raises(LedgerError):
        _ = ledger.committed
    ledger.settle(1, 1)

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", _port()):
        with pytest.raises(LedgerError, match="keeps the budget does not answer"):
            await ledger.acquire(1)


@pytest.mark.parametrize("text", ["x", "80", "0:secret", "70000:secret", ":secret", "80:", "/a:b"])
def test_a_variable_that_names_no_keeper(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that spent without its keeper would spend beyond the budget."""
    monkeypatch.setenv(KEEPER_VARIABLE, text)
    for opened in (open_cache, lambda: open_ledger(None)):
        with pytest.raises(UsageError, match="does not name a keeper"):
            opened()


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"\n", b"null\n", b"[]\n", b"\xff\n", b"{}\n", b'{"operation": "spend"}\n'),
        b'{"operation": "reserve", "amount": -5, "budget": null}\n',
        b'{"operation": "reserve", "amount": "much", "budget": null}\n',
        b'{"operation": "read", "key": "../../etc/passwd", "folder": ""}\n',
        b'{"operation": "write", "key": "%s", "folder": []}\n' % _KEY.encode(),
    ],
)
async def test_what_is_no_call(line: bytes, tmp_path: Path) -> None:
    keeper = Keeper(Ledger())
    reply = json.loads(await keeper.answer(line))
    assert reply["error"]["code"] == "ledger_unusable"
    assert "malformed" in reply["error"]["message"]
    assert json.loads(await keeper.answer(b'{"operation": "committed"}\n')) == {"committed": 0}
    assert not (tmp_path / "cache").exists()
