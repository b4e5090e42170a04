"""A correct daemon with faults that start at one request and end at another.

    python -m tests.fakes.hostile --addr HOST:PORT --fault KIND:AT:LASTS[:questions] …
                                       [--never-indexed N] [--once FILE]

AT is the number of the first affected search or ask request, from 0; LASTS is how many are
affected, 0 meaning all. With `questions`, the fault spares requests with filters, which only an
index proof sends. Transport faults take precedence over others. With `--once`, the faults apply
only if FILE does not exist yet; the file is created.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memconform.bench.raw_http import RawExchange, RawRequest, serve_forever
from tests.fakes.faults import Chunk
from tests.fakes.scripted import ScriptedBrain, ScriptedDaemon


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, from which request on, and for how many requests."""

    kind: str
    at: int
    lasts: int = 0
    questions: bool = False

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read `KIND:AT:LASTS[:questions]`; raises ValueError for anything else."""
        kind, at, lasts, *more = text.split(":")
        if kind not in KINDS or more not in ([], ["questions"]):
            raise ValueError(f"invalid fault {text!r}")
        return cls(kind, int(at), int(lasts), bool(more))

    def strikes(self, number: int, *, is_question: bool) -> bool:
        """Whether the request with this number is affected."""
        has_begun = number >= self.at and (is_question or not self.questions)
        return has_begun and (self.lasts == 0 or number < self.at + self.lasts)


def _swap_texts(chunks: list[Chunk], brain: ScriptedBrain) -> list[Chunk]:
    """Keep the ids, but give each chunk the text of another document."""
    texts = list(brain.documents.values())
    text_by_path = dict(zip(brain.documents, [*texts[1:], *texts[:1]], strict=True))
    # An earlier fault may have changed the path.
    return [{**c, "text": text_by_path.get(c["path"], texts[0])} for c in chunks]


_RANKINGS: dict[str, Callable[[list[Chunk], ScriptedBrain], list[Chunk]]] = {
    "index_lost": lambda _, __: [],
    "texts_swapped": _swap_texts,
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
_HIDDEN_THIRD = {"third_pending": 7, "third_away": 0}
"""Faults that hide a third of the documents, with the pending count that the brain reports."""


class _RecordingExchange(RawExchange):
    """Records what is sent, so that it can be sent again."""

    def __init__(self, exchange: RawExchange) -> None:
        super().__init__(exchange._writer)
        self.sent = b""

    async def raw(self, data: bytes) -> None:
        self.sent += data
        await super().raw(data)


Answer = Callable[[RawExchange], Awaitable[None]]


async def _twice(exchange: RawExchange, answer: Answer) -> None:
    copy = _RecordingExchange(exchange)
    await answer(copy)
    await exchange.raw(copy.sent)


async def _twice_later(exchange: RawExchange, answer: Answer) -> None:
    copy = _RecordingExchange(exchange)
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
KINDS = (*_RANKINGS, *_HIDDEN_THIRD, *_TRANSPORT, *_STATE)


class HostileDaemon(ScriptedDaemon):
    """A ScriptedDaemon with faults; requests are counted across all brains."""

    def __init__(self, faults: Sequence[Fault], *, never_indexed: int = 0) -> None:
        """`never_indexed`: how many documents each brain accepts but never finds."""
        super().__init__("", "", None)
        self._faults = tuple(faults)
        self._never_indexed = never_indexed
        self._request_count = 0
        self._number = -1
        self._previous: list[Chunk] = []
        self._ghosts: set[int] = set()

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        """Answer as the scripted daemon does, unless a fault strikes."""
        if not request.path.endswith(("/search", "/ask")):
            await super().answer(request, exchange)
            return
        self._number, self._request_count = self._request_count, self._request_count + 1
        is_question = "filters" not in request.json()
        kinds = [f.kind for f in self._faults if f.strikes(self._number, is_question=is_question)]
        for kind in kinds:
            if kind in _TRANSPORT:
                await _TRANSPORT[kind](exchange, lambda e: self._answer_with(request, e, kinds))
                return
        await self._answer_with(request, exchange, kinds)

    async def _answer_with(
        self, request: RawRequest, exchange: RawExchange, kinds: list[str]
    ) -> None:
        if "restarted" in kinds:
            # Aborts once: the worker has died, and its successor has counts but no index.
            fault = next(f for f in self._faults if f.kind == "restarted")
            if self._number == fault.at:
                exchange.abort()
                return
        with self._active(kinds):
            await super().answer(request, exchange)

    @contextlib.contextmanager
    def _active(self, kinds: list[str]) -> Iterator[None]:
        self._active_kinds = kinds
        if "emptied" in kinds or "recreated" in kinds:
            for name, brain in self._brains.items():
                if brain.documents:
                    self._ghosts.add(len(brain.documents) if "recreated" in kinds else 0)
                    self._brains[name] = ScriptedBrain()
        yield
        self._active_kinds = []

    _active_kinds: Sequence[str] = ()

    def _counts(self, brain_id: str) -> dict[str, Any]:
        counts = super()._counts(brain_id)
        number = self._request_count
        active = [f.kind for f in self._faults if f.strikes(number, is_question=True)]
        pending = max((_HIDDEN_THIRD.get(kind, 0) for kind in active), default=0)
        if "miscounted" in active:
            counts["documents"] += 1
        if self._ghosts:
            counts |= dict.fromkeys(("documents", "chunks"), max(self._ghosts))
        return counts | {"pending": pending}

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        hidden: set[str] = set()
        paths = sorted(brain.documents)
        if any(kind in _HIDDEN_THIRD for kind in self._active_kinds):
            hidden = set(paths[::3])
        if self._never_indexed:
            hidden |= set(paths[-self._never_indexed :])
        visible = ScriptedBrain()
        visible.documents = {p: t for p, t in brain.documents.items() if p not in hidden}
        result = super()._retrieve(visible, query, body)
        chunks, previous = result["chunks"], self._previous
        self._previous = chunks
        if "one_late" in self._active_kinds:
            top_k = int(body.get("topK", 10))
            chunks = previous[:top_k]
        if "restarted" in self._active_kinds:
            chunks = []
        for kind in self._active_kinds:
            if kind in _RANKINGS:
                chunks = _RANKINGS[kind](chunks, brain)
        return result | {"chunks": chunks}


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
