"""Commands elsewhere with one cache and one budget: each reply is paid for once."""

import asyncio
import json
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memconform.daemons.environment import BUDGET_SERVER
from memconform.errors import UsageError
from memconform.llm import budget_server
from memconform.llm.budget import Ledger
from memconform.llm.budget_client import RemoteCache, open_cache, open_ledger
from memconform.llm.budget_server import BudgetServer
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import BudgetSpentError, LedgerError

_KEY = "a" * 64
_REPLY = CachedReply("text", "model-1")


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "cache"))
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        monkeypatch.setenv(BUDGET_SERVER, f"{nobody.getsockname()[1]}:secret")


@asynccontextmanager
async def _served(contexts: Path | None = None) -> AsyncIterator["_Server"]:
    """A server behind a port, as a worker has it."""
    server = _Server(Ledger(), contexts)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secret, _, line = (await reader.readline()).partition(b" ")
        assert (secret, line[:1] in b"?!") == (b"secret", True)
        writer.write(await server.answer("shard", line[1:]))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", _port()):
        yield server


class _Server(BudgetServer):
    """Counts the calls that it has received."""

    def __init__(self, ledger: Ledger, contexts: Path | None) -> None:
        super().__init__(ledger, contexts)
        self._received: Counter[str] = Counter()
        self._news = asyncio.Event()

    async def answer(self, caller: str, line: bytes) -> bytes:
        reply = asyncio.ensure_future(super().answer(caller, line))
        # What the call does before it waits is done when the others go on.
        await asyncio.sleep(0)
        self._received[json.loads(line)["operation"]] += 1
        self._news.set()
        return await reply

    async def has(self, operation: str, times: int) -> None:
        """Wait until an operation was called so often."""
        while self._received[operation] < times:
            self._news.clear()
            await self._news.wait()


def _port() -> int:
    return int(os.environ[BUDGET_SERVER].partition(":")[0])


async def test_equal_calls_of_two_commands_are_made_once() -> None:
    """Shards that extract the facts of one session at the same time each paid for them."""
    async with _served() as server:
        first, second = open_cache(), open_cache()
        assert await first.look_up(_KEY, claims=True) is None
        waiting = asyncio.create_task(second.look_up(_KEY, claims=True))
        await server.has("claim", 2)
        assert not waiting.done()
        # Another call does not wait, nor does who makes none.
        assert await second.look_up("b" * 64, claims=True) is None
        assert await second.look_up(_KEY, claims=False) is None
        first.write(_KEY, _REPLY)
        assert await waiting == _REPLY
        assert await asyncio.to_thread(second.read, _KEY) == _REPLY
    # It is in the cache of this machine.
    assert ReplyCache().read(_KEY) == _REPLY


async def test_a_call_that_fails_is_made_by_whoever_waits() -> None:
    async with _served() as server:
        cache = open_cache()
        assert await cache.look_up(_KEY, claims=True) is None
        waiting = [asyncio.create_task(cache.look_up(_KEY, claims=True)) for _ in range(2)]
        await server.has("claim", 3)
        cache.release(_KEY)
        done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in done] == [None]
        cache.release(_KEY)
        assert [await task for task in left] == [None]


def _line(operation: str, **fields: object) -> bytes:
    return json.dumps({"operation": operation, "folder": "", "key": _KEY, **fields}).encode()


_RESERVE = _line("reserve", amount=60, budget=100)


async def _committed(server: BudgetServer) -> int:
    return int(json.loads(await server.answer("anybody", _line("committed")))["committed"])


async def test_a_caller_that_is_lost_holds_up_nobody() -> None:
    """Its shard, done again elsewhere, waited for its own calls; others, for its money."""
    server = BudgetServer(Ledger())
    for line in (_line("claim"), _RESERVE):
        assert await server.answer("lost", line) == b"{}\n"
    waiting = [
        asyncio.create_task(server.answer("other", line)) for line in (_line("claim"), _RESERVE)
    ]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    server.forget("lost")
    claimed, refused = [json.loads(await task) for task in waiting]
    assert claimed == {}
    # What it had reserved may have been charged, and stays committed.
    assert refused["error"]["code"] == "budget_spent"
    assert await _committed(server) == 60


async def test_a_call_that_is_withdrawn_reserves_and_claims_nothing() -> None:
    """Money was reserved for a caller that had been cancelled, and nobody settled it."""
    server = BudgetServer(Ledger())
    for line in (_line("claim"), _RESERVE):
        await server.answer("a", line)
    waiting = [asyncio.create_task(server.answer("b", line)) for line in (_line("claim"), _RESERVE)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await server.answer("a", _line("settle", reserved=60, spent=10))
    await server.answer("a", _line("release"))
    assert await _committed(server) == 10
    # Nobody makes the call, so that this one need not wait.
    assert await server.answer("c", _line("claim")) == b"{}\n"


async def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_server, "_WAIT_SECONDS", 0.0)
    server = BudgetServer(Ledger())
    for line in (_line("claim"), _RESERVE):
        await server.answer("silent", line)
    assert await server.answer("other", _line("claim")) == b"{}\n"
    assert b"budget_spent" in await server.answer("other", _RESERVE)


async def test_commands_share_one_budget() -> None:
    async with _served() as server:
        one, two = open_ledger(100e-9), open_ledger(100e-9)
        await one.acquire(60)
        # It waits for what the other one gives back.
        waiting = asyncio.create_task(two.acquire(70))
        await server.has("reserve", 2)
        assert not waiting.done()
        assert await asyncio.to_thread(lambda: one.committed) == 60
        one.settle(60, 30)
        await waiting
        two.settle(70, 70)
        await server.has("settle", 2)
        with pytest.raises(BudgetSpentError, match=r"\$0.0000 of \$0.0000 is spent") as caught:
            await one.acquire(1)
        assert caught.value.code == "budget_spent"
        assert "--max-cost-usd" in str(caught.value.hint)
        assert await asyncio.to_thread(lambda: one.committed) == 100
        # What costs nothing needs no server.
        await one.acquire(0)
        one.settle(0, 0)
        # Another budget than that of the first call: whoever continues may have a larger one.
        await open_ledger(200e-9).acquire(100)


async def test_replies_of_a_folder_of_their_own(tmp_path: Path) -> None:
    async with _served(tmp_path / "contexts"):
        cache = open_cache(tmp_path / "contexts")
        assert await cache.look_up(_KEY, claims=True) is None
        cache.write(_KEY, _REPLY)
        assert await cache.look_up(_KEY, claims=True) == _REPLY
        assert await open_cache().look_up(_KEY, claims=True) is None
        # A folder that the command line of the server does not name is no place to write to.
        other = open_cache(tmp_path / "elsewhere")
        assert await other.look_up("c" * 64, claims=True) is None
        other.write("c" * 64, _REPLY)
        assert await other.look_up("c" * 64, claims=True) == _REPLY
    assert ReplyCache(tmp_path / "contexts").read(_KEY) == _REPLY
    assert not (tmp_path / "elsewhere").exists()


async def test_without_the_server_nothing_is_spent() -> None:
    cache, ledger = open_cache(), open_ledger(1.0)
    assert isinstance(cache, RemoteCache)
    assert (await cache.look_up(_KEY, claims=True), cache.read(_KEY)) == (None, None)
    cache.write(_KEY, _REPLY)
    with pytest.raises(LedgerError, match="has the budget does not answer"):
        await ledger.acquire(1)
    with pytest.raises(LedgerError):
        _ = ledger.committed
    ledger.settle(1, 1)

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", _port()):
        with pytest.raises(LedgerError, match="has the budget does not answer"):
            await ledger.acquire(1)


@pytest.mark.parametrize("text", ["x", "80", "0:secret", "70000:secret", ":secret", "80:", "/a:b"])
def test_a_variable_that_names_no_server(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that spent without it would spend beyond the budget."""
    monkeypatch.setenv(BUDGET_SERVER, text)
    for opened in (open_cache, lambda: open_ledger(None)):
        with pytest.raises(UsageError, match="does not have a port"):
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
    server = BudgetServer(Ledger())
    reply = json.loads(await server.answer("shard", line))
    assert reply["error"]["code"] == "ledger_unusable"
    assert "malformed" in reply["error"]["message"]
    assert json.loads(await server.answer("shard", b'{"operation": "committed"}\n')) == {
        "committed": 0
    }
    assert not (tmp_path / "cache").exists()
