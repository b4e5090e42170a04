"""Measure the reference daemons with the 105,591 turns of WMB-100K.

    python scripts/bench_corpus.py [--sdk SDK …] [--against REVISION] [--data DIR]

With --against, the daemons of that revision are measured in the same run, as ratios. Without the
public files, in $MEMCONFORM_DATA or beside the checkout, nothing is measured. Limits are for an
idle machine with two cores, on whose disk no thousands of files were deleted in the last minutes:
ext4 passes over their inodes one by one when it creates a file, and go took in 3,700 documents per
second after such a deletion, 7,000 without it.
"""

import argparse
import asyncio
import base64
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from memconform.daemons.availability import build_all
from memconform.daemons.discovery import find_runner
from memconform.daemons.resources import RUN_ID_VARIABLE
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.datasets.wmb import read_wmb
from memconform.printing.logs import configure_logs
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_BATCH = 500
_QUESTIONS = 500
_REST_S = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """What a daemon was measured with."""

    ingest: float
    """Documents per second, by batch."""
    bare: float
    """Files per second of a loop that writes one a document, in the same run."""
    p50_ms: float
    p95_ms: float
    overhead_ms: float
    """p50 of a search without the query itself, and without what /healthz takes."""
    start_s: float
    """From launch to the first answer, with all documents stored."""
    start_mib: float
    """Resident after that, once the daemon is at rest."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a reference SDK."""

    ingest: float
    p95_ms: float
    overhead_ms: float
    start_s: float
    start_mib: float


_LIMITS = {
    "go": Limits(ingest=8_000, p95_ms=15, overhead_ms=0.2, start_s=2, start_mib=250),
    "ts": Limits(ingest=5_000, p95_ms=30, overhead_ms=0.4, start_s=3, start_mib=600),
    "py": Limits(ingest=4_000, p95_ms=30, overhead_ms=0.6, start_s=5, start_mib=600),
}


def _documents(data: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The bodies to ingest, one a turn, and the texts of some questions."""
    [haystack] = read_wmb(data, "B")
    bodies = [
        {
            "path": f"turns/{number:06}.md",
            "contentType": "text/markdown",
            "contentBase64": base64.b64encode(item.text.encode()).decode(),
            "metadata": {"session_id": item.group, "index": number},
        }
        for number, item in enumerate(haystack.items)
    ]
    step = len(haystack.queries) // _QUESTIONS
    return bodies, [query.question for query in haystack.queries[::step]][:_QUESTIONS]


async def _measure(
    runner: SdkRunner, folder: Path, bodies: Sequence[dict[str, Any]], questions: Sequence[str]
) -> Figures:
    launch = Launch(run_id=f"bench-corpus-{folder.name}", folder=folder)
    folder.mkdir()
    async with runner.serve(launch) as daemon:
        ingest = await asyncio.to_thread(_ingest, daemon, bodies)
        bare = await asyncio.to_thread(_write, folder / "bare", bodies)
        beside, inner = await asyncio.to_thread(_search, daemon, questions)
    started = time.perf_counter()
    async with runner.serve(launch) as daemon:
        await asyncio.to_thread(_search, daemon, questions[:1])
        start = time.perf_counter() - started
        await asyncio.sleep(_REST_S)
        memory = _resident(launch.run_id)
    return Figures(
        ingest=ingest,
        bare=bare,
        p50_ms=statistics.median(inner),
        p95_ms=statistics.quantiles(inner, n=20)[-1],
        overhead_ms=statistics.median(beside),
        start_s=start,
        start_mib=memory,
    )


def _ingest(daemon: Daemon, bodies: Sequence[dict[str, Any]]) -> float:
    with httpx.Client(base_url=daemon.base_url, trust_env=False, timeout=120) as http:
        http.post("/v1/brains", json={"brainId": "corpus"}).raise_for_status()
        took = 0.0
        for first in range(0, len(bodies), _BATCH):
            batch = bodies[first : first + _BATCH]
            request = http.build_request(
                "POST", "/v1/brains/corpus/ingest/batch", json={"documents": batch}
            )
            started = time.perf_counter()
            http.send(request).raise_for_status()
            took += time.perf_counter() - started
    return len(bodies) / took


def _write(folder: Path, bodies: Sequence[dict[str, Any]]) -> float:
    folder.mkdir()
    started = time.perf_counter()
    for number, body in enumerate(bodies):
        (folder / f"{number:06}").write_text(body["contentBase64"])
    return len(bodies) / (time.perf_counter() - started)


def _search(daemon: Daemon, questions: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of keyword searches: beside the query itself, and those that the daemon says.

    The first is without what the client and the connection take, which is what /healthz takes.
    """
    beside, inner = [], []
    with httpx.Client(base_url=daemon.base_url, trust_env=False, timeout=120) as http:
        health = http.build_request("GET", "/healthz")
        for question in questions:
            body = {"query": question, "topK": 10, "mode": "bm25"}
            request = http.build_request("POST", "/v1/brains/corpus/search", json=body)
            wall, answer = _timed(http, request)
            least, _ = _timed(http, health)
            inner.append(answer.json()["trace"]["searchMs"])
            beside.append(wall - least - inner[-1])
    return beside, inner


def _timed(http: httpx.Client, request: httpx.Request) -> tuple[float, httpx.Response]:
    started = time.perf_counter()
    answer = http.send(request)
    return (time.perf_counter() - started) * 1e3, answer.raise_for_status()


def _resident(run_id: str) -> float:
    """MiB of a daemon; the guard process belongs to the harness."""
    size = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            is_ours = process.environ().get(RUN_ID_VARIABLE) == run_id
            if is_ours and "guard.py" not in " ".join(process.cmdline()):
                size += process.memory_info().rss
    return size / 2**20


def _show(name: str, figures: Figures, limits: Limits) -> None:
    report(f"{name}: ingest/batch", figures.ingest, "1/s", limit=limits.ingest, least=True)
    print(f"  {f'{name}: the same by a bare loop of files':<58} {figures.bare:>9.2f} 1/s")
    report(f"{name}: p95 of a keyword search", figures.p95_ms, "ms", limit=limits.p95_ms)
    print(f"  {f'{name}: p50 of a keyword search':<58} {figures.p50_ms:>9.2f} ms")
    limit = limits.overhead_ms
    report(f"{name}: p50 beside the query and /healthz", figures.overhead_ms, "ms", limit=limit)
    report(f"{name}: start to the first answer", figures.start_s, "s", limit=limits.start_s)
    report(f"{name}: resident after it", figures.start_mib, "MiB", limit=limits.start_mib)


@contextmanager
def _checkout(revision: str, folder: Path) -> Iterator[Path]:
    """A work tree of the revision."""
    tree = folder / "revision"
    git = ("git", "-C", str(_CHECKOUT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", tree, revision], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", tree], check=True)


async def _run(arguments: argparse.Namespace, folder: Path) -> None:
    bodies, questions = _documents(arguments.data)
    print(f"{len(bodies):,} documents, {len(questions)} questions, keyword searches, top 10")
    runners = [find_runner(sdk, _CHECKOUT) for sdk in arguments.sdk]
    present, _ = await build_all(runners, print)
    for runner in present:
        now = await _measure(runner, folder / runner.name, bodies, questions)
        _show(runner.name, now, _LIMITS[runner.name])
        if not arguments.against:
            continue
        with _checkout(arguments.against, folder) as tree:
            before = find_runner(str(tree / "sdks" / runner.name / "sdk.toml"), tree)
            await before.build(print)
            old = await _measure(before, folder / f"{runner.name}-before", bodies, questions)
        for field in ("ingest", "p95_ms", "overhead_ms", "start_s", "start_mib"):
            ratio = getattr(now, field) / getattr(old, field)
            name = f"{runner.name}: {field}, of that of {arguments.against}"
            print(f"  {name:<58} {ratio:>9.2f}")


def main() -> int:
    configure_logs("warning")
    parser = argparse.ArgumentParser()
    parser.add_argument("--sdk", nargs="+", choices=list(_LIMITS), default=list(_LIMITS))
    parser.add_argument("--against")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    data = Path(os.environ.get("MEMCONFORM_DATA") or _CHECKOUT.parent / "shared" / "data")
    arguments.data = arguments.data or data / "wmb100k"
    if not arguments.data.is_dir():
        print(f"  skipped: no public files in {arguments.data}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(arguments, Path(folder)))
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
