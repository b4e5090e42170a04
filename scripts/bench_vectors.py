"""Check that the reference daemons search 100,000 vectors exactly, identically and fast.

    python scripts/bench_vectors.py [--sdk SDK …] [--documents N] [--queries N]

The time is the daemon's own, `trace.searchMs`, minus that of the same query in a brain of one
document, which is spent on embedding. A missed limit, or a ranking that is not identical to the
other daemons' to the last bit, is marked, and the script exits with 1.
"""

import argparse
import asyncio
import json
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from hashlib import shake_256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from memconform.client.client import ContractClient
from memconform.contract.core import Filters, SearchRequest, SearchResponse
from memconform.contract.wire import Mode
from memconform.daemons.availability import build_all
from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import RunningDaemon
from memconform.ingest.documents import Document, InMemoryCorpus
from memconform.ingest.seeding import seeded_brain
from memconform.printing.logs import configure_logs
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_DIMENSIONS = 384
_FOLDERS = 10
_TOP_K = 10
_WARM_UP = 5
_LIMITS_MS = {"py": 20.0, "go": 40.0, "ts": 70.0}
_FILTERS = {
    "no filter": None,
    "pathPrefix of all": Filters(path_prefix="raw/"),
    "pathPrefix of a tenth": Filters(path_prefix="raw/3/"),
}
_NUMBERS = [str(byte - 128) for byte in range(256)]

Ranking = list[tuple[str, float]]


class _Embeddings(BaseHTTPRequestHandler):
    """Serves embeddings: a text's vector is its hash, as integers; daemons scale it to length 1."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = (
            f'{{"object":"embedding","index":{index},"embedding":[{_numbers(text)}]}}'
            for index, text in enumerate(body["input"])
        )
        content = (
            f'{{"object":"list","model":"hash","data":[{",".join(rows)}],'
            '"usage":{"prompt_tokens":1,"total_tokens":1}}'
        ).encode()
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
        )
        # One write: a second one would wait for the acknowledgement of the first.
        self.wfile.write(f"{head}\r\n\r\n".encode() + content)


def _numbers(text: str) -> str:
    digest = shake_256(text.encode()).digest(_DIMENSIONS)
    return ",".join(map(_NUMBERS.__getitem__, digest))


@contextmanager
def _embedding_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Embeddings) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _documents(count: int) -> Iterator[Document]:
    for number in range(count):
        path = f"raw/{number % _FOLDERS}/{number:06}.md"
        yield Document(path, f"Note {number} tells of lamp {number}.".encode(), "text/markdown")


@asynccontextmanager
async def _daemon(sdk: str, folder: Path, embeddings: str) -> AsyncIterator[ContractClient]:
    """Serve a daemon, and yield a client of it."""
    folder.mkdir()
    runner: SdkRunner = find_runner(sdk, _CHECKOUT)
    runner.use_upstream("scripted")
    await runner.build(print)
    launch = Launch(
        run_id=f"bench-vectors-{secrets.token_hex(4)}", folder=folder, upstream=embeddings
    )
    async with runner.serve(launch) as daemon, ContractClient(daemon.base_url) as client:
        yield client


async def _measure(
    sdk: str, client: ContractClient, documents: int, queries: int
) -> dict[str, list[Ranking]]:
    runner = find_runner(sdk, _CHECKOUT)
    daemon = RunningDaemon(client.base_url)
    one, many = InMemoryCorpus(_documents(1)), InMemoryCorpus(_documents(documents))
    async with seeded_brain(client, runner, daemon, "one", one, [Mode.SEMANTIC]):
        pass
    started = time.perf_counter()
    async with seeded_brain(client, runner, daemon, "many", many, [Mode.SEMANTIC]):
        pass
    rate = documents / (time.perf_counter() - started)
    print(f"  {'ingest/batch: documents per second':<58} {rate:>9.2f} 1/s")
    rankings: dict[str, list[Ranking]] = {}
    for name, filters in _FILTERS.items():
        embedding, whole = [], []
        rankings[name] = []
        for number in range(_WARM_UP + queries):
            request = SearchRequest(
                query=f"question {number}", top_k=_TOP_K, mode=Mode.SEMANTIC, filters=filters
            )
            alone, _ = await client.search("one", request.model_copy(update={"filters": None}))
            answer, _ = await client.search("many", request)
            rankings[name].append(_ranking(answer))
            if number >= _WARM_UP:
                embedding.append(alone.trace.search_ms or 0.0)
                whole.append(answer.trace.search_ms or 0.0)
        share = statistics.median(embedding)
        report(
            f"semantic, {name}: p50 without embedding",
            statistics.median(whole) - share,
            "ms",
            limit=_LIMITS_MS[sdk],
        )
        late = statistics.quantiles(whole, n=20)[-1] - share
        print(f"  {'  p95':<58} {late:>9.2f} ms")
        print(f"  {'  embedding':<58} {share:>9.2f} ms")
    return rankings


def _ranking(answer: SearchResponse) -> Ranking:
    return [(chunk.path, chunk.score) for chunk in answer.chunks]


def _compare(rankings_by_sdk: dict[str, dict[str, list[Ranking]]]) -> None:
    """Report how many rankings differ from the first daemon's."""
    first, *others = rankings_by_sdk
    for sdk in others:
        for name, rankings in rankings_by_sdk[sdk].items():
            pairs = zip(rankings, rankings_by_sdk[first][name], strict=True)
            differing = sum(mine != theirs for mine, theirs in pairs)
            report(f"{sdk} and {first}, {name}: rankings that differ", differing, "", limit=0)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdk", action="append", choices=list(_LIMITS_MS))
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=60)
    options = parser.parse_args()
    configure_logs("warning")
    runners = [find_runner(sdk, _CHECKOUT) for sdk in options.sdk or _LIMITS_MS]
    present, skipped = await build_all(runners, print)
    for sdk in skipped:
        print(f"  {sdk.sdk} skipped: {sdk.error.message}")
    rankings = {}
    with tempfile.TemporaryDirectory() as folder, _embedding_server() as embeddings:
        for name in [runner.name for runner in present]:
            print(f"{name} daemon, {options.documents} vectors of {_DIMENSIONS}")
            async with _daemon(name, Path(folder) / name, embeddings) as client:
                rankings[name] = await _measure(name, client, options.documents, options.queries)
    if rankings:
        _compare(rankings)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
