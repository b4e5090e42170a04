"""A daemon that is good but for faults that begin at some request and end at another.

    python -m memconform.fakes.hostile --addr HOST:PORT --fault KIND:AT:LASTS[:questions] …
                                       [--never-indexed N] [--once FILE]

AT and LASTS count the requests that search or ask, from 0; LASTS 0 is for ever. A fault of
`questions` spares requests with filters, which only a proof of the index makes. Where one of
several faults is about the transport, it goes first. With `--once` there are none where FILE is
there already, and it is made.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memconform.fakes.faults import Chunk
from memconform.fakes.scripted import ScriptedBrain, ScriptedDaemon
from memconform.fakes.wire import RawExchange, RawRequest, serve_forever


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, from which request on, and for how many."""

    kind: str
    at: int
    lasts: int = 0
    questions: bool = False

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read `KIND:AT:LASTS[:questions]`; raises ValueError for anything else."""
        kind, at, lasts, *more = text.split(":")
        if kind not in KINDS or more not in ([], ["questions"]):
            raise ValueError(f"{text} is not a fault")
        return cls(kind, int(at), int(lasts), bool(more))

    def strikes(self, number: int, *, is_question: bool) -> bool:
        """Whether a request, by its number, is struck."""
        began = number >= self.at and (is_question or not self.questions)
        return began and (self.lasts == 0 or number < self.at + self.lasts)


def _others(chunks: list[Chunk], brain: ScriptedBrain) -> list[Chunk]:
    """The same ids with the texts of other documents."""
    texts = list(brain.documents.values())
    next_ = dict(zip(brain.documents, [*texts[1:], *texts[:1]], strict=True))
    # Another fault may have changed the path before.
    return [{**c, "text": next_.get(c["path"], texts[0])} for c in chunks]


_RANKINGS: dict[str, Callable[[list[Chunk], ScriptedBrain], list[Chunk]]] = {
    "index_lost": lambda _, __: [],
    "texts_swapped": _others,
    "texts_cut": lambda chunks, _: [{**c, "text": c["text"][:4]} for c in chunks],
    "texts_alike": lambda chunks, _: [
        {**c, "text": c["text"].replace("o", "\u043e")} for c in chunks
    ],
    "summaries_only": lambda chunks, _: [
        {**c, "text": "", "summary": c["text"][:4]} for c in chunks
    ],
    "ids_swapped": lambda chunks, _: [{**c, "documentId": "elsewhere"} for c in chunks],
    "first_dropped": lambda chunks, _: chunks[1:],
    "made_up": lambda chunks, _: [{**c, "path": "made/up.md"} for c in chunks],
}
_AWAY = {"third_pending": 7, "third_away": 0}
"""A third of the documents is not found; what the brain says is pending meanwhile."""


class _Copying(RawExchange):
    """Keeps what is sent, for those who send it once more."""

    def __init__(self, exchange: RawExchange) -> None:
        super().__init__(exchange._writer)  # noqa: SLF001 - one fake in two files
        self.sent = b""

    async def raw(self, data: bytes) -> None:
        self.sent += data
        await super().raw(data)


Answer = Callable[[RawExchange], Awaitable[None]]


async def _twice(exchange: RawExchange, answer: Answer) -> None:
    copy = _Copying(exchange)
    await answer(copy)
    await exchange.raw(copy.sent)


async def _twice_later(exchange: RawExchange, answer: Answer) -> None:
    copy = _Copying(exchange)
    await answer(copy)
    await asyncio.sleep(0.003)
    await exchange.raw(copy.sent)


async def _reset(exchange: RawExchange, _: Answer) -> None:
    exchange.abort()


async def _cut(exchange: RawExchange, _: Answer) -> None:
    await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    await exchange.raw(b"Content-Length: 999\r\n\r\n{")
    exchange.abort()


async def _late(exchange: RawExchange, answer: Answer) -> None:
    await asyncio.sleep(0.02)
    await answer(exchange)


async def _refuse(exchange: RawExchange, _: Answer) -> None:
    await exchange.problem(500, "internal_error", "boom")


async def _twice_keyed(exchange: RawExchange, _: Answer) -> None:
    await exchange.reply(200, b'{"chunks": [1], "chunks": [], "tookMs": 1, "trace": {}}')


_TRANSPORT: dict[str, Callable[[RawExchange, Answer], Awaitable[None]]] = {
    "twice": _twice,
    "twice_later": _twice_later,
    "reset": _reset,
    "cut": _cut,
    "late": _late,
    "http_500": _refuse,
    "duplicate_keys": _twice_keyed,
}
_STATE = ("one_late", "emptied", "restarted", "recreated", "miscounted")
KINDS = (*_RANKINGS, *_AWAY, *_TRANSPORT, *_STATE)


class HostileDaemon(ScriptedDaemon):
    """One instance serves one address; its faults are counted over all brains."""

    def __init__(self, faults: Sequence[Fault], *, never_indexed: int = 0) -> None:
        """`never_indexed`: of how many documents each brain takes in and never finds."""
        super().__init__("", "", None)
        self._faults = tuple(faults)
        self._never_indexed = never_indexed
        self._asked = 0
        self._number = -1
        self._previous: list[Chunk] = []
        self._ghosts: set[int] = set()

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        """As the scripted daemon, unless a fault strikes."""
        if not request.path.endswith(("/search", "/ask")):
            await super().answer(request, exchange)
            return
        self._number, self._asked = self._asked, self._asked + 1
        is_question = "filters" not in request.json()
        struck = [f.kind for f in self._faults if f.strikes(self._number, is_question=is_question)]
        for kind in struck:
            if kind in _TRANSPORT:
                await _TRANSPORT[kind](exchange, lambda e: self._answered(request, e, struck))
                return
        await self._answered(request, exchange, struck)

    async def _answered(
        self, request: RawRequest, exchange: RawExchange, struck: list[str]
    ) -> None:
        if "restarted" in struck:
            # Once: the worker is gone, and its successor has counts and no index.
            fault = next(f for f in self._faults if f.kind == "restarted")
            if self._number == fault.at:
                exchange.abort()
                return
        with self._struck(struck):
            await super().answer(request, exchange)

    @contextlib.contextmanager
    def _struck(self, struck: list[str]) -> Iterator[None]:
        self._now = struck
        if "emptied" in struck or "recreated" in struck:
            for name, brain in self._brains.items():
                if brain.documents:
                    self._ghosts.add(len(brain.documents) if "recreated" in struck else 0)
                    self._brains[name] = ScriptedBrain()
        yield
        self._now = []

    _now: Sequence[str] = ()

    def _counts(self, brain_id: str) -> dict[str, Any]:
        counts = super()._counts(brain_id)
        number = self._asked
        active = [f.kind for f in self._faults if f.strikes(number, is_question=True)]
        pending = max((_AWAY.get(kind, 0) for kind in active), default=0)
        if "miscounted" in active:
            counts["documents"] += 1
        if self._ghosts:
            counts |= dict.fromkeys(("documents", "chunks"), max(self._ghosts))
        return counts | {"pending": pending}

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        away: set[str] = set()
        paths = sorted(brain.documents)
        if any(kind in _AWAY for kind in self._now):
            away = set(paths[::3])
        if self._never_indexed:
            away |= set(paths[-self._never_indexed :])
        visible = ScriptedBrain()
        visible.documents = {p: t for p, t in brain.documents.items() if p not in away}
        found = super()._retrieve(visible, query, body)
        chunks, previous = found["chunks"], self._previous
        self._previous = chunks
        if "one_late" in self._now:
            top_k = int(body.get("topK", 10))
            chunks = previous[:top_k]
        if "restarted" in self._now:
            chunks = []
        for kind in self._now:
            if kind in _RANKINGS:
                chunks = _RANKINGS[kind](chunks, brain)
        return found | {"chunks": chunks}


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="hostile")
    parser.add_argument("--addr", required=True)
    parser.add_argument("--fault", action="append", type=Fault.parse, default=[])
    parser.add_argument("--never-indexed", type=int, default=0)
    parser.add_argument("--once", type=Path)
    options = parser.parse_args()
    if options.once is not None:
        if options.once.exists():
            options.fault = []
        options.once.touch()
    host, _, port = options.addr.rpartition(":")
    daemon = HostileDaemon(options.fault, never_indexed=options.never_indexed)
    try:
        await serve_forever(daemon.answer, host, int(port))
    except OSError as error:
        sys.stderr.write(f"hostile: cannot listen on {options.addr}: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
