"""What was not sent costs nothing: the vendors' own clients over a scripted network."""

import asyncio
import json
import selectors
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Literal, TypeVar

import httpcore2
import pytest
from httpcore2._backends.auto import AutoBackend
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform.llm.accounting import Reply, estimate
from memconform.llm.budget import Ledger
from memconform.llm.chat import (
    ChatRequest,
    Completion,
    LlmError,
    Message,
    ModelUnusableError,
    ServiceDownError,
    Usage,
)
from memconform.llm.names import ModelName
from memconform.llm.session import CallPolicy, LlmSession, Model
from memconform.llm.vendors import open_model

_T = TypeVar("_T")
_REQUEST = ChatRequest(
    messages=(Message("user", "Is it right?"),), prompt_version="v", max_output_tokens=100
)
_USAGE = Usage(30, 7)
_NAMES = ("openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5")

_UNSENT = (
    *("connect", "connect_timeout", "connect_hangs", "connect_canceled", "tls", "tls_hangs"),
    *("headers_fail", "headers_hang", "headers_canceled"),
)
"""Points of failure before the first byte of the body."""
_LOST = (
    *("body_fails", "body_hangs", "body_canceled", "closed", "read_timeout", "read_hangs"),
    *("read_canceled", "cut", "not_json", "502"),
)
"""Points of failure after which a service may have answered, and charges."""
_FREE = ("400", "401", "429", "500")
_ANSWERED = ("usage", "no_usage", "stopped", "stopped403")
_POINTS = (*_UNSENT, *_LOST, *_FREE, *_ANSWERED)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose timers are due as soon as there is nothing else to do, in no thread either."""

    def __init__(self) -> None:
        self._now = 0.0
        self._in_threads = 0
        loop = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                waits = timeout is None or (timeout > 0 and loop._in_threads > 0)
                events = super().select(None if waits else 0)
                if timeout and not events:
                    loop._now += timeout
                return events

        super().__init__(Selector())

    def time(self) -> float:
        return self._now

    def run_in_executor(self, *args: Any) -> Any:  # type: ignore[override] # passed on
        # OpenAI's client asks a thread for the platform before its first request.
        self._in_threads += 1
        future = super().run_in_executor(*args)
        future.add_done_callback(self._leave_thread)
        return future

    def _leave_thread(self, _: object) -> None:
        self._in_threads -= 1


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(work)


def _openai_body(**more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "yes"}
    return {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], **more}


def _body(point: str) -> bytes:
    """A body that both vendors' APIs could have sent."""
    body = _openai_body(content=[{"type": "text", "text": "yes"}], stop_reason="end_turn")
    if "stopped" in point:
        body["error"] = {"code": 403 if "403" in point else "content_filter"}
    if point in ("usage", "stopped", "stopped403"):
        counts = {"prompt_tokens": _USAGE.input, "completion_tokens": _USAGE.output}
        body["usage"] = counts | {"input_tokens": _USAGE.input, "output_tokens": _USAGE.output}
    return json.dumps(body).encode()


@dataclass
class _Stream(httpcore2.AsyncNetworkStream):
    """A connection that plays one attempt; it answers once and is closed."""

    point: str
    writes: int = 0
    reads: int = 0

    async def start_tls(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        await self._play("tls", httpcore2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"))
        return self

    async def write(self, *_: Any, **__: Any) -> None:
        self.writes += 1
        part = "headers" if self.writes == 1 else "body"
        await self._play(part, httpcore2.WriteError("broken pipe"))

    async def read(self, *_: Any, **__: Any) -> bytes:
        self.reads += 1
        if self.reads > 1:
            return b""
        await self._play("read", httpcore2.ReadTimeout("no reply"))
        body = b"{" if self.point == "not_json" else _body(self.point)
        status = self.point if self.point.isdecimal() else "200"
        size = len(body) + (self.point == "cut")
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {size}\r\nConnection: close\r\n"
        if self.point in ("closed", "headers_fail", "body_fails"):
            return b""
        return f"{head}Content-Type: application/json\r\n\r\n".encode() + body

    async def aclose(self) -> None:
        pass

    def get_extra_info(self, _: str) -> Any:
        return None

    async def _play(self, part: str, error: Exception) -> None:
        """Fail, hang or be canceled at this part of the attempt, if that is its point."""
        name, _, how = self.point.partition("_")
        if name != part:
            return
        if how in ("hang", "hangs"):
            await asyncio.Event().wait()
        if how == "canceled":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        raise httpcore2.ConnectTimeout("slow") if self.point == "connect_timeout" else error


@dataclass
class _Network(httpcore2.AsyncNetworkBackend):
    """A network whose connections play these points, one after another."""

    points: Iterator[str]
    played: list[str] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    """What the ledger held when each attempt began."""
    ledger: Ledger | None = None

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        point = next(self.points)
        self.played.append(point)
        assert self.ledger is not None
        self.committed.append(self.ledger.committed)
        stream = _Stream(point)
        await stream._play("connect", httpcore2.ConnectError("refused"))
        return stream

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # short limit: the back-off of the client


def _session(budget: float | None = None, address: str = "https://service.test/v1") -> LlmSession:
    env = {f"{vendor}_API_KEY": "k" for vendor in ("OPENAI", "ANTHROPIC")}
    env |= {f"{vendor}_BASE_URL": address for vendor in ("OPENAI", "ANTHROPIC")}
    policy = CallPolicy(deadline_s=120, cache="off", concurrency=3)
    return LlmSession(Ledger(budget), policy=policy, env=env)


async def _connect(model: Model, network: _Network) -> None:
    """Let the model's own client use this network."""
    await model.chat.ready()
    client = model.chat._client._client  # type: ignore[attr-defined]
    client._client._transport._pool._network_backend = network
    network.ledger = model.session.ledger


def _price(model: Model, usage: Usage) -> int:
    assert model.traits.price is not None
    return model.traits.price.cost(usage)


def _charge(model: Model, point: str) -> int:
    """What an attempt costs that ended at this point."""
    if point in ("usage", "stopped", "stopped403"):
        return _price(model, _USAGE)
    sent = point in (*_LOST, "no_usage")
    return _price(model, estimate(_REQUEST, model.traits)) if sent else 0


async def _play(
    name: str, points: Iterable[str], budget: float | None, calls: int, at_once: int
) -> None:
    session = _session(budget)
    model = session.model(ModelName.parse(name, {}))
    network = _Network(chain(points, repeat("usage")))
    await _connect(model, network)
    costs: list[int] = []
    canceled = 0
    for start in range(0, calls, at_once):
        batch = [model.ask(_REQUEST, str) for _ in range(start, min(start + at_once, calls))]
        for end in await asyncio.gather(*batch, return_exceptions=True):
            assert isinstance(end, Reply | LlmError | asyncio.CancelledError), repr(end)
            if isinstance(end, asyncio.CancelledError):
                canceled += 1
            else:
                costs.append(end.cost)
    committed = session.ledger.committed
    assert session.reserved == 0
    assert committed == sum(_charge(model, point) for point in network.played)
    if budget is not None:
        assert max([0, *network.committed]) <= session.ledger.budget  # type: ignore[operator]
    # Nobody is left to whom a canceled call could report its cost.
    if canceled:
        assert committed >= sum(costs)
    else:
        assert committed == sum(costs)
    await session.aclose()


@settings(max_examples=50)
@given(
    name=st.sampled_from(_NAMES),
    points=st.lists(st.sampled_from(_POINTS), max_size=12),
    budget=st.sampled_from((None, 0.001, 0.003, 0.01)),
    calls=st.integers(1, 6),
    at_once=st.integers(1, 3),
)
def test_the_ledger_holds_what_services_may_charge_and_nothing_else(
    name: str, points: list[str], budget: float | None, calls: int, at_once: int
) -> None:
    _run(_play(name, points, budget, calls, at_once))


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("point", _POINTS)
def test_each_point_of_failure_costs_what_was_sent(name: str, point: str) -> None:
    """A reservation was kept for what never left: $0.9994 of $1 for 0 tokens."""
    _run(_play(name, [point], 1.0, 1, 1))


@pytest.mark.parametrize("name", _NAMES)
def test_a_client_without_hooks_is_charged_for_what_it_may_have_sent(name: str) -> None:
    """If the mark of what was sent breaks, money must not look unspent."""

    async def play() -> None:
        session = _session()
        model = session.model(ModelName.parse(name, {}))

        class Silent:
            async def ready(self) -> None:
                pass

            async def complete(self, *_: object) -> Completion:
                raise RuntimeError("somewhere")

            async def close(self) -> None:
                pass

        with pytest.raises(RuntimeError):
            await replace(model, chat=Silent()).ask(_REQUEST, str)
        assert session.ledger.committed == _price(model, estimate(_REQUEST, model.traits))

    _run(play())


_LOCAL: tuple[tuple[Literal["url", "key"], str], ...] = (
    ("url", ""),
    ("url", "localhost:8000/v1"),
    ("url", "htp://service.test/v1"),
    ("url", "http://[::1/v1"),
    ("url", "http://service.test:99999999/v1"),
    ("url", "http:///v1"),
    ("key", "k\ny"),
)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize(("part", "value"), _LOCAL)
def test_what_cannot_be_sent_ends_the_calls_at_once_and_costs_nothing(
    name: str, part: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty OPENAI_BASE_URL took two minutes, and with a budget all of the budget."""

    network = _Network(repeat("connect" if part == "url" else "usage"))

    async def connect_tcp(_: object, *args: Any, **more: Any) -> httpcore2.AsyncNetworkStream:
        return await network.connect_tcp(*args, **more)

    monkeypatch.setattr(AutoBackend, "connect_tcp", connect_tcp)

    async def play() -> None:
        session = _session(1.0)
        network.ledger = session.ledger
        model = session.model(ModelName.parse(name, {}))
        changed = {"base_url" if part == "url" else "api_key": value}
        where = replace(model.endpoint, **changed)  # type: ignore[arg-type] # both are texts
        opened = open_model(model.name, where, model.traits, model.provider.accepted)
        with pytest.raises((ModelUnusableError, ServiceDownError)) as raised:
            await replace(model, chat=opened).ask(_REQUEST, str)
        assert raised.value.cost == 0
        assert raised.value.usage is None
        assert session.ledger.committed == 0

    _run(play())


def test_the_proxys_own_request_sends_nothing_to_the_service() -> None:
    """A tunnel that a proxy refuses is a request that the service never saw."""

    async def play() -> None:
        session = _session()
        model = session.model(ModelName.parse(_NAMES[0], {}))
        network = _Network(repeat("407"))
        await _connect(model, network)
        client = model.chat._client._client._client  # type: ignore[attr-defined]
        pool = client._transport._pool
        proxied = httpcore2.AsyncHTTPProxy("http://proxy.test:3128", network_backend=network)
        client._transport._pool = proxied
        with pytest.raises(ServiceDownError, match="407"):
            await model.ask(_REQUEST, str)
        assert session.ledger.committed == 0
        await pool.aclose()

    _run(play())


def test_a_client_that_cannot_be_opened_is_named_and_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A SOCKS proxy without its package, or a missing certificate file, ended in a traceback."""

    async def play() -> None:
        session = _session(1.0)
        model = session.model(ModelName.parse(_NAMES[0], {}))
        client = model.chat._client  # type: ignore[attr-defined]

        def failing() -> object:
            raise ImportError("Using SOCKS proxy, but the 'socksio' package is not installed")

        monkeypatch.setattr(client, "_opened", failing)
        with pytest.raises(ModelUnusableError, match="socksio"):
            await model.ask(_REQUEST, str)
        assert session.ledger.committed == 0

    _run(play())
