"""Measure the reference daemons: how soon they are ready, and their ingest and search.

    python scripts/bench_daemons.py

Limits are for an idle machine with two cores.
"""

import asyncio
import base64
import json
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from memconform.daemons.availability import build_all
from memconform.daemons.discovery import find_runner
from memconform.daemons.resources import RUN_ID_VARIABLE
from memconform.daemons.sdk_runner import Daemon, Launch
from memconform.printing.logs import configure_logs
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_ROUNDS = 5
_DOCUMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a reference SDK."""

    ready_s: float
    batch: float
    """Minimum documents per second with ingest/batch."""
    single: float
    """Minimum documents per second, one per request."""
    overhead_ms: float
    """Maximum p50 of a search over a raw socket, without the time of the query itself."""


_LIMITS = {
    "go": Limits(ready_s=0.8, batch=2_000, single=400, overhead_ms=0.5),
    "ts": Limits(ready_s=0.8, batch=2_000, single=400, overhead_ms=0.8),
    "py": Limits(ready_s=1.2, batch=1_000, single=400, overhead_ms=1.5),
}


async def _present() -> list[str]:
    """Return the reference SDKs that can be built here; the others are printed."""
    runners = [find_runner(sdk, _CHECKOUT) for sdk in _LIMITS]
    present, skipped = await build_all(runners, print)
    for sdk in skipped:
        print(f"  {sdk.sdk} skipped: {sdk.error.message}")
    return [runner.name for runner in present]


@asynccontextmanager
async def _daemon(sdk: str, folder: Path) -> AsyncIterator[tuple[Daemon, Callable[[], float]]]:
    """Serve a daemon; yields it with a function that returns its resident memory in MiB."""
    folder.mkdir()
    runner = find_runner(sdk, _CHECKOUT)
    await runner.build(print)
    run_id = f"bench-{sdk}"
    async with runner.serve(Launch(run_id=run_id, folder=folder)) as daemon:

        def resident() -> float:
            sizes = 0
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    ours = process.environ().get(RUN_ID_VARIABLE) == run_id
                    # The guard process belongs to the harness, not to the daemon.
                    if ours and "guard.py" not in " ".join(process.cmdline()):
                        sizes += process.memory_info().rss
            return sizes / 2**20

        yield daemon, resident


async def daemons(folder: Path) -> None:
    """Measure start, ingest and search of the reference daemons, with 10,000 short documents."""
    present = await _present()
    await _start(present, folder)
    for sdk in present:
        print(f"{sdk} daemon, {_DOCUMENTS} short documents")
        async with _daemon(sdk, folder / f"daemon-{sdk}") as (daemon, resident):
            await asyncio.to_thread(_measure_daemon, daemon.base_url, _LIMITS[sdk], resident)


async def _start(present: Sequence[str], folder: Path) -> None:
    ready: dict[str, list[float]] = {sdk: [] for sdk in present}
    for number in range(_ROUNDS):
        for sdk, seconds in ready.items():
            async with _daemon(sdk, folder / f"start-{sdk}-{number}") as (daemon, _):
                seconds.append((daemon.ready_ms or 0.0) / 1e3)
    for sdk, seconds in ready.items():
        limit = _LIMITS[sdk].ready_s
        report(f"{sdk}: launch to ready", statistics.median(seconds), "s", limit=limit)


def _measure_daemon(url: str, limits: Limits, resident: Callable[[], float]) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        for brain in ("one", "many"):
            http.post("/v1/brains", json={"brainId": brain}).raise_for_status()
        bodies = [_document(number) for number in range(_DOCUMENTS)]
        marks = [time.perf_counter()]
        for number, body in enumerate(bodies, start=1):
            http.post("/v1/brains/one/ingest/file", json=body).raise_for_status()
            if number % 1_000 == 0:
                marks.append(time.perf_counter())
        _report_ingest("one request per document", marks, limit=limits.single)
        print(f"  {'resident memory':<58} {resident():>9.2f} MiB")
        marks = [time.perf_counter()]
        for first in range(0, _DOCUMENTS, 500):
            batch = {"documents": bodies[first : first + 500]}
            http.post("/v1/brains/many/ingest/batch", json=batch).raise_for_status()
            if (first + 500) % 1_000 == 0:
                marks.append(time.perf_counter())
        _report_ingest("ingest/batch", marks, limit=limits.batch)
    for mode in ("bm25", "semantic", "hybrid"):
        overhead, whole = _search_overhead(url, mode)
        limit = limits.overhead_ms
        report(f"search {mode}: p50 without the query itself", overhead, "ms", limit=limit)
        print(f"  {f'search {mode}: p50, query included':<58} {whole:>9.2f} ms")


def _report_ingest(name: str, marks: list[float], *, limit: float) -> None:
    rate = _DOCUMENTS / (marks[-1] - marks[0])
    ratio = (marks[-1] - marks[-2]) / (marks[1] - marks[0])
    report(f"{name}: documents per second", rate, "1/s", limit=limit, least=True)
    report(f"{name}: time of the last 1,000 by the first", ratio, "", limit=1.5)


def _document(number: int) -> dict[str, str]:
    words = " ".join(f"w{(number * 7 + step * step) % 5_000}" for step in range(20))
    text = f"Note {number} tells of {words}."
    return {
        "path": f"raw/{number:05}.md",
        "contentType": "text/markdown",
        "contentBase64": base64.b64encode(text.encode()).decode(),
    }


def _search_overhead(url: str, mode: str) -> tuple[float, float]:
    """p50 of (wall - trace.searchMs) and of wall in ms, over one keep-alive socket."""
    over, whole = [], []
    address = urlsplit(url)
    head = f"POST /v1/brains/many/search HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: "
    with socket.create_connection((address.hostname or "", address.port or 0)) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(300):
            query = f"w{number * 11 % 5_000} w{number * 13 % 5_000} w{number * 17 % 5_000}"
            body = json.dumps({"query": query, "topK": 10, "mode": mode}).encode()
            started = time.perf_counter()
            raw.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
            answer = _read_answer(raw)
            wall = (time.perf_counter() - started) * 1e3
            whole.append(wall)
            over.append(wall - json.loads(answer)["trace"]["searchMs"])
    return statistics.median(over), statistics.median(whole)


def _read_answer(raw: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += raw.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise ValueError(f"the daemon answered {data!r}")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += raw.recv(1 << 16)
    return body


async def main() -> int:
    configure_logs("warning")
    with tempfile.TemporaryDirectory() as folder:
        await daemons(Path(folder))
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
