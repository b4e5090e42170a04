"""A daemon that speaks another dialect: other routes, keys, events and paths, and much left unsaid.

    python -m tests.fakes.foreign --addr HOST:PORT --root FOLDER [--late] [--skip TEXT]

It stores documents as files below `FOLDER/stores`. With `--late` it indexes only when it starts,
and with `--skip` it never indexes, though it lists, files whose path has that text.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from memconform.bench.raw_http import RawExchange, RawRequest, serve_forever
from tests.fakes.scripted import ScriptedBrain

PREFIX, SUFFIX = "kb/", ".txt"

DIALECT: dict[str, Any] = {
    "name": "foreign",
    "keys": "pascal",
    "request_keys": "snake",
    "counts": "listing",
    "routes": {
        "version": False,
        "ingest_file": False,
        "ingest_batch": False,
        "create_brain": "POST /stores",
        "brain": "GET /stores/{brain}",
        "delete_brain": "DELETE /stores/{brain}",
        "write_document": "PUT /stores/{brain}/docs",
        "list_documents": "GET /stores/{brain}/docs",
        "search": "POST /stores/{brain}/query",
        "ask": "POST /stores/{brain}/answer",
    },
    "statuses": {"create_brain": 200, "write_document": 200},
    "events": {"retrieve": "hits", "answer_delta": "token", "citation": "cite", "done": "end"},
    "paths": {"prefix": PREFIX, "suffix": SUFFIX},
    "objects": {
        "health": {"ok": False},
        "create_brain": {"brainId": "store.id", "description": "store.about"},
        "brain": {
            "brainId": "Store.Id",
            "description": False,
            "documents": False,
            "chunks": False,
            "vectors": False,
            "pending": False,
        },
        "search_request": {"query": "text", "topK": "limit", "filters": "only"},
        "ask_request": {"question": "text", "topK": "limit"},
        "search_response": {"chunks": "Result.Hits", "trace": "Debug?", "tookMs": False},
        "chunk": {"text": ["Body", "Text"], "documentId": False},
        "trace": {
            "effectiveMode": "Served",
            "requestedMode": False,
            "embedderUsed": False,
            "reranked": False,
            "fellBackToBm25": False,
            "candidateK": False,
            "searchMs": False,
        },
        "retrieve": {"trace": False, "mode": False, "topK": False},
        "listing": {"items": "Entries"},
        "stat": {"is_dir": "Folder", "mtime": "Changed"},
    },
}
"""The dialect, as an sdk.toml would give it."""


class ForeignDaemon:
    """Answers its own routes, from files below a folder or from memory."""

    def __init__(self, folder: Path | None = None, *, late: bool = False, skip: str = "") -> None:
        """`late`: documents are found only by a daemon that was started after they were stored;
        those whose path has the text `skip` are not."""
        self._folder = folder
        self._late = late
        self._stores: dict[str, ScriptedBrain] = {}
        for store in folder.iterdir() if folder is not None and folder.is_dir() else ():
            files = [file for file in store.rglob("*") if file.is_file()]
            texts = {file.relative_to(store).as_posix(): file.read_text("utf-8") for file in files}
            self._stores[store.name] = ScriptedBrain()
            self._stores[store.name].documents = {
                path: text for path, text in texts.items() if not (skip and skip in path)
            }

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        """Answer one request."""
        parts = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        match (request.method, parts.path.strip("/").split("/")):
            case ("GET", ["healthz"]):
                await exchange.json({"status": "up"})
            case ("POST", ["stores"]):
                name = request.json()["store"]["id"]
                self._stores[name] = ScriptedBrain()
                if self._folder is not None:
                    (self._folder / name).mkdir(parents=True, exist_ok=True)
                await exchange.json({"Store": {"Id": name}})
            case (_, ["stores", name, *rest]) if name in self._stores:
                await self._in_store(name, rest, request, query, exchange)
            case _:
                await exchange.json({"message": "there is nothing here"}, 404)

    async def _in_store(
        self,
        name: str,
        rest: list[str],
        request: RawRequest,
        query: dict[str, str],
        exchange: RawExchange,
    ) -> None:
        store = self._stores[name]
        match (request.method, rest):
            case ("GET", []):
                await exchange.json({"Store": {"Id": name}})
            case ("DELETE", []):
                del self._stores[name]
                await exchange.raw(b"HTTP/1.1 204 X\r\n\r\n")
            case ("PUT", ["docs"]):
                self._put(name, query["path"], request.body.decode())
                await exchange.json({})
            case ("GET", ["docs"]):
                entries = [_entry(path, text) for path, text in self._stored(name)]
                await exchange.json({"Entries": entries})
            case ("POST", ["query"]):
                body = request.json()
                hits = self.hits(store, body)
                await exchange.json({"Result": {"Hits": hits}, "Debug": self.trace(body)})
            case ("POST", ["answer"]):
                await self._answer(store, request.json(), exchange)
            case _:
                await exchange.json({"message": "no such route"}, 404)

    def _put(self, name: str, path: str, text: str) -> None:
        if self._folder is not None:
            file = self._folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        if not self._late:
            self._stores[name].documents[path] = text

    def _stored(self, name: str) -> list[tuple[str, str]]:
        if self._folder is None:
            return list(self._stores[name].documents.items())
        root = self._folder / name
        files = sorted(file for file in root.rglob("*") if file.is_file())
        return [(file.relative_to(root).as_posix(), file.read_text("utf-8")) for file in files]

    def hits(self, store: ScriptedBrain, body: dict[str, Any]) -> Any:
        """The ranked chunks of a search, in its own words."""
        paths = (body.get("only") or {}).get("paths")
        return [
            {"ChunkId": c["chunkId"], "Path": c["path"], "Score": c["score"], "Body": c["text"]}
            for c in store.search(body["text"], int(body["limit"]), paths)
        ]

    def trace(self, body: dict[str, Any]) -> dict[str, Any]:
        """What it says of a search."""
        del body
        return {"Served": "bm25"}

    async def _answer(
        self, store: ScriptedBrain, body: dict[str, Any], exchange: RawExchange
    ) -> None:
        hits = self.hits(store, body)
        text = hits[0]["Body"] if hits else "No information available."
        events: list[tuple[str, Any]] = [("hits", {"Chunks": hits}), ("token", {"Text": text})]
        for hit in hits[:1]:
            cited = {key: hit[key] for key in ("ChunkId", "Path", "Score")}
            events.append(("cite", cited | {"Title": "T"}))
        events.append(("end", {"Ok": True}))
        await exchange.begin_stream()
        for name, data in events:
            await exchange.piece(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        await exchange.end_stream()


def _entry(path: str, text: str) -> dict[str, Any]:
    return {"Path": path, "Size": len(text), "Changed": "2026-01-01T00:00:00Z", "Folder": False}


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="foreign")
    parser.add_argument("--addr", required=True)
    parser.add_argument("--root", required=True, type=Path)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--skip", default="")
    options = parser.parse_args()
    host, _, port = options.addr.rpartition(":")
    daemon = ForeignDaemon(options.root / "stores", late=options.late, skip=options.skip)
    await serve_forever(daemon.answer, host, int(port))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
