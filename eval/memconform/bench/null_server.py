"""The null server: answers every question immediately with the same bytes.

The overhead of a harness is how much longer it takes against this server than a bare request loop.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from memconform.bench.raw_http import RawExchange, RawRequest, serve_forever
from memconform.daemons.ports import loopback_host

_CHUNKS = [
    {
        "chunkId": f"{n:032x}#0",
        "documentId": f"{n:032x}",
        "path": f"raw/note-{n}.md",
        "score": 1.0 - n / 10,
        "text": f"Note {n}: the answer is forty-two, as everybody in the office remembers.",
    }
    for n in range(5)
]
_TRACE = {
    "requestedMode": "bm25",
    "effectiveMode": "bm25",
    "embedderUsed": False,
    "reranked": False,
    "fellBackToBm25": False,
    "candidateK": 50,
    "searchMs": 0.01,
}
_SEARCH = json.dumps({"chunks": _CHUNKS, "tookMs": 0.02, "trace": _TRACE}).encode()
_CITATION = {
    "chunkId": _CHUNKS[0]["chunkId"],
    "path": "raw/note-0.md",
    "title": "Note 0",
    "score": 1.0,
}
_EVENTS = [
    ("retrieve", {"chunks": _CHUNKS, "topK": 5, "mode": "bm25", "trace": _TRACE}),
    *(("answer_delta", {"text": word}) for word in ("The ", "answer ", "is ", "forty-two.")),
    ("citation", _CITATION),
    ("done", {"ok": True, "answer": "The answer is forty-two."}),
]
_ASK = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in _EVENTS).encode()
_BRAIN = {"documents": 5, "chunks": 5, "vectors": 0, "pending": 0}


async def answer(request: RawRequest, exchange: RawExchange) -> None:
    if request.path.endswith("/search"):
        await exchange.reply(200, _SEARCH)
    elif request.path.endswith("/ask"):
        await exchange.reply(200, _ASK, "text/event-stream")
    elif request.path == "/version":
        await exchange.json({"name": "null", "version": "1", "contract": "1"})
    elif request.path.startswith("/v1/brains/"):
        await exchange.json({"brainId": request.path.rpartition("/")[2], **_BRAIN})
    else:
        await exchange.json({"ok": True})


@contextmanager
def null_server() -> Iterator[str]:
    """Run a null server in a separate process; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "memconform.bench.null_server"], stdout=subprocess.PIPE, text=True
    )
    try:
        yield (process.stdout.readline() if process.stdout else "").split()[-1]
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    asyncio.run(  # noqa: TID251 - a program of its own
        serve_forever(answer, loopback_host(), int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    )
