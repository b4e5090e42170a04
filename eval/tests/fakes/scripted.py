"""A daemon that honours the contract except for one configured fault.

    python -m tests.fakes.scripted --addr HOST:PORT [--fault NAME] [--on TEXT] [--note FILE]

`--fault` names one of `FAULTS`; faults of questions affect those that contain the text of `--on`.
`--note` appends the query of each search to a file; `kills_other` ends the process whose id is in
that file's neighbour `.pid`.
"""

import argparse
import asyncio
import base64
import gzip
import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from memconform.bench.raw_http import RawExchange, RawRequest, serve_forever
from tests.fakes.faults import (
    ASK_FAULTS,
    ENCODINGS,
    EVENT_FAULTS,
    EXCHANGE_FAULTS,
    FAULTS,
    HOSTILE,
    RANKING_FAULTS,
    STREAM_FAULTS,
    Chunk,
    Event,
    encode,
)

LATE_SEARCHES = 12
"""Searches that find nothing before a daemon that `indexes_late` finds everything."""
_TERM = re.compile(r"[a-z0-9]+")


class ScriptedBrain:
    """Ranks documents by how many terms they share with a query."""

    def __init__(self) -> None:
        self.documents: dict[str, str] = {}
        self.description: str | None = None

    def search(
        self,
        query: str,
        top_k: int,
        paths: list[str] | None,
        prefix: str = "",
        sessions: list[str] | None = None,
    ) -> list[Chunk]:
        query_terms = set(_TERM.findall(query.lower()))
        scored = [
            (len(query_terms.intersection(_TERM.findall(text.lower()))), path, text)
            for path, text in self.documents.items()
            if (paths is None or path in paths)
            and path.startswith(prefix)
            and (sessions is None or any(f'session_id: "{each}"' in text for each in sessions))
        ]
        best = sorted((hit for hit in scored if hit[0]), key=lambda hit: (-hit[0], hit[1]))
        return [
            {
                "chunkId": f"{path}#0",
                "documentId": path,
                "path": path,
                "score": float(score),
                "text": text,
            }
            for score, path, text in best[:top_k]
        ]


class ScriptedDaemon:
    """Answers the contract's routes from memory, with the fault that it is given."""

    def __init__(self, fault: str, on: str, note: Path | None) -> None:
        self._fault = fault
        self._on = on
        self._note = note
        self.searches = 0
        self._struck = False
        """Whether a question contained the text of `--on`."""
        self._brains: dict[str, ScriptedBrain] = {}

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        if self._fault == "tells_headers" and self._on.encode() in request.body:
            sys.stderr.write(f"scripted: {request.headers}\n")
            await exchange.problem(500, "internal_error", f"headers were {request.headers}")
            return
        if self._fault == "echoes_header" and self._on.encode() in request.body:
            await _echo_header(request.headers.get("x-key", ""), exchange)
            return
        match (request.method, request.path.strip("/").split("/")):
            case ("GET", ["healthz"]):
                if self._fault == "never_healthy":
                    await exchange.problem(503, "internal_error", "warming up for ever")
                else:
                    await exchange.json({"ok": True})
            case ("GET", ["version"]) if self._fault != "no_version":
                await exchange.json(self._version())
            case ("GET", ["v1", "brains"]):
                listed = [] if self._fault == "lists_no_brain" else self._brains
                await exchange.json({"items": [{"brainId": brain} for brain in listed]})
            case ("POST", ["v1", "brains"]):
                await self._create(request, exchange)
            case (_, ["v1", "brains", brain_id, *rest]) if brain_id in self._brains:
                await self._in_brain(brain_id, rest, request, exchange)
            case _ if self._fault == "plain_errors":
                await exchange.json({"error": "nothing here"}, 404)
            case _:
                leaked = os.environ["CANARY_TOKEN"] if self._fault == "leaks_token" else ""
                where = f"{request.method} {request.path} {leaked}".rstrip()
                await exchange.problem(404, "not_found", where)

    def _version(self) -> dict[str, Any]:
        contract = "2" if self._fault == "other_contract" else "1"
        run_id = os.environ.get("MEMCONFORM_RUN_ID")
        version = "1"
        if self._fault == "leaks_token":
            version = f"1 of {os.environ['CANARY_TOKEN']}"
            sys.stderr.write(f"scripted: {os.environ['CANARY_TOKEN']}\n")
        return {"name": "scripted", "version": version, "contract": contract, "runId": run_id}

    async def _create(self, request: RawRequest, exchange: RawExchange) -> None:
        brain_id = request.json()["brainId"]
        self._brains[brain_id] = ScriptedBrain()
        self._brains[brain_id].description = request.json().get("description")
        await exchange.json(self._counts(brain_id), 201)

    def _counts(self, brain_id: str) -> dict[str, Any]:
        size = len(self._brains[brain_id].documents)
        if self._fault == "miscounts":
            size = max(0, size - 1)
        pending = 3 if self._fault == "stays_pending" else 0
        chunks = 0 if self._fault == "no_chunks" else size
        counts = {"documents": size, "chunks": chunks, "vectors": 0, "pending": pending}
        description = self._brains[brain_id].description
        return {"brainId": brain_id, "description": description, **counts}

    async def _in_brain(
        self, brain_id: str, rest: list[str], request: RawRequest, exchange: RawExchange
    ) -> None:
        brain = self._brains[brain_id]
        match (request.method, rest):
            case ("GET", []) if self._fault == "brain_500":
                await exchange.problem(500, "internal_error", "cannot count")
            case ("GET", []) if self._fault == "dies_when_counted" and self._struck:
                os.kill(os.getpid(), signal.SIGKILL)
            case ("GET", []):
                other = "other" if self._fault == "other_brain" else brain_id
                await exchange.json(self._counts(brain_id) | {"brainId": other})
            case ("DELETE", []):
                if self._fault == "keeps_brain":
                    await exchange.problem(404, "not_found", "no such brain")
                    return
                del self._brains[brain_id]
                await exchange.raw(b"HTTP/1.1 204 X\r\n\r\n")
            case ("POST", ["ingest", "file"]) if self._fault == "hangs_on_ingest":
                sys.stderr.write("the ingest hangs\n")
                await asyncio.sleep(3600)
            case ("POST", ["ingest", "file"]) if self._fault == "dies_on_ingest":
                os.kill(os.getpid(), signal.SIGKILL)
            case ("POST", ["ingest", "file"]):
                await exchange.json(self._ingest(brain, request.json()))
            case ("POST", ["ingest", "batch"]) if self._fault != "no_batch":
                items = [self._ingest(brain, body) for body in request.json()["documents"]]
                await exchange.json({"items": items, "tookMs": 0.1})
            case ("POST", ["search"]):
                await self._search(brain, request.json(), exchange)
            case ("POST", ["ask"]):
                await self._ask(brain, request.json(), exchange)
            case _:
                await exchange.problem(404, "not_found", request.path)

    def _ingest(self, brain: ScriptedBrain, body: dict[str, Any]) -> dict[str, Any]:
        content = base64.b64decode(body["contentBase64"])
        path = body["path"]
        brain.documents[path] = "" if self._fault == "not_searchable" else content.decode()
        size = len(content) - (self._fault == "truncates")
        return {
            "documentId": path,
            "path": path,
            "chunkCount": int(self._fault != "no_chunks"),
            "bytes": size,
            "tookMs": 0.1,
        }

    def _retrieve(self, brain: ScriptedBrain, query: str, body: dict[str, Any]) -> dict[str, Any]:
        strikes = self._strikes(query, body)
        self._struck = self._struck or strikes
        filters = body.get("filters") or {}
        prefix = "" if self._fault == "ignores_prefix" else filters.get("pathPrefix", "")
        sessions = filters.get("sessionIds") if self._filters_sessions(query) else None
        chunks = brain.search(
            query, int(body.get("topK", 10)), filters.get("paths"), prefix, sessions
        )
        if self._fault == "indexes_late" and self.searches <= LATE_SEARCHES:
            chunks = []
        if strikes and self._fault in RANKING_FAULTS:
            chunks = RANKING_FAULTS[self._fault](chunks)
        mode = "bm25" if body.get("mode") == "auto" else body.get("mode")
        if strikes and self._fault == "mode_not_served":
            mode = "semantic" if mode == "bm25" else "bm25"
        if strikes and self._fault == "fell_back_lie":
            mode = "hybrid"
        if strikes and self._fault == "loses_document":
            brain.documents.popitem()
        other = strikes and self._fault == "other_requested_mode"
        trace = {
            "requestedMode": "magic" if other else body.get("mode"),
            "effectiveMode": mode,
            "embedderUsed": mode != "bm25",
            "reranked": False,
            "fellBackToBm25": strikes and self._fault == "fell_back_lie",
            "candidateK": 50,
            "searchMs": 0.1,
        }
        return {"chunks": chunks, "tookMs": 0.1, "trace": trace}

    def _strikes(self, query: str, body: dict[str, Any]) -> bool:
        """Whether the fault affects this request; searches with filters are never affected."""
        return self._on in query and "filters" not in body

    def _filters_sessions(self, query: str) -> bool:
        """Whether `filters.sessionIds` is honoured, which without a fault it is not."""
        return self._fault == "filters_sessions" or (
            self._fault == "forgets_sessions" and self._on not in query
        )

    def _take_note(self, query: str, body: dict[str, Any]) -> None:
        """Append a question to the file of `--note`, so that tests can count what was asked."""
        if self._note is None or "filters" in body:
            return
        with self._note.open("a") as note:
            note.write(f"{query}\n")
        if self._fault == "kills_other" and self._strikes(query, body):
            with suppress(ProcessLookupError):
                os.kill(int(self._note.with_suffix(".pid").read_text()), signal.SIGKILL)
        if self._fault == "dies_once" and self._strikes(query, body):
            marker = self._note.with_suffix(".died")
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    async def _search(
        self, brain: ScriptedBrain, body: dict[str, Any], exchange: RawExchange
    ) -> None:
        query = body["query"]
        self.searches += 1
        self._take_note(query, body)
        if self._strikes(query, body) and self._fault in EXCHANGE_FAULTS:
            await EXCHANGE_FAULTS[self._fault](exchange)
            return
        await exchange.json(self._retrieve(brain, query, body))

    async def _ask(self, brain: ScriptedBrain, body: dict[str, Any], exchange: RawExchange) -> None:
        question = body["question"]
        strikes = self._strikes(question, body)
        if strikes and self._fault in EXCHANGE_FAULTS:
            await EXCHANGE_FAULTS[self._fault](exchange)
            return
        top_k = int(body.get("topK", 5))
        if self._fault == "ask_ignores_prefix":
            body = {name: value for name, value in body.items() if name != "filters"}
        if strikes and self._fault in ASK_FAULTS:
            body = body | {"topK": top_k + 1}
        result = self._retrieve(brain, question, body)
        if strikes and self._fault in ASK_FAULTS:
            result["chunks"] = ASK_FAULTS[self._fault](result["chunks"])
        events = _events(result, top_k)
        if strikes and self._fault in EVENT_FAULTS:
            events = EVENT_FAULTS[self._fault](events)
        encode_event = ENCODINGS.get(self._fault if strikes else "", encode)
        await exchange.begin_stream()
        data = b"".join(encode_event(name, payload) for name, payload in events)
        if strikes and self._fault in STREAM_FAULTS:
            await STREAM_FAULTS[self._fault](exchange, data)
            return
        await exchange.piece(data)
        await exchange.end_stream()


async def _echo_header(value: str, exchange: RawExchange) -> None:
    """Leak a header's value in every encoding that a daemon might use, gzipped."""
    forms = [
        value,
        *(base64.b64encode(b"." * n + value.encode() + b"!").decode() for n in range(3)),
        base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
        "".join(f"\\u{ord(letter):04X}" for letter in value),
        "".join(f"%{ord(letter):02x}" for letter in value),
        value.encode("utf-16-le").decode("latin-1"),
    ]
    for form in forms:
        sys.stderr.write(f"scripted: {form}\n")
    sys.stderr.flush()
    problem = {"status": 500, "title": "x", "detail": "; ".join(forms), "code": "internal_error"}
    # Written by hand, because json.dumps does not escape plain letters.
    escaped = json.dumps(problem)[:-1] + f', "more": "{forms[5]}", "key": {{"{value}": 1}}}}'
    body = gzip.compress(escaped.encode() + b"\n" + value.encode("utf-16-be"))
    head = b"HTTP/1.1 500 X\r\nContent-Type: application/problem+json\r\nContent-Encoding: gzip\r\n"
    await exchange.raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def _events(result: dict[str, Any], top_k: int) -> list[Event]:
    chunks, trace = result["chunks"], result["trace"]
    retrieve = {"chunks": chunks, "topK": top_k, "mode": trace["effectiveMode"], "trace": trace}
    answer = chunks[0]["text"] if chunks else "No information available."
    deltas = [("answer_delta", {"text": word}) for word in re.findall(r"[^ ]+ *", answer)]
    citations = [
        ("citation", {key: chunk[key] for key in ("chunkId", "path", "score")} | {"title": "T"})
        for chunk in chunks[:1]
    ]
    return [("retrieve", retrieve), *deltas, *citations, ("done", {"ok": True, "answer": answer})]


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="scripted")
    parser.add_argument("--addr", required=True)
    parser.add_argument("--fault", default="", choices=FAULTS)
    parser.add_argument("--on", default="")
    parser.add_argument("--note", type=Path)
    options = parser.parse_args()
    if options.fault in ("exits_after_noise", "noisy"):
        sys.stderr.write("noise " * (1 << 18))
    if options.fault == "hostile_log":
        sys.stderr.buffer.write(HOSTILE.encode() + b"\n\x9b31m\n")
    if options.fault in ("exits", "exits_after_noise", "hostile_log"):
        sys.stderr.write("scripted: exiting at once\n")
        return 7
    if options.fault == "never_listens":
        await asyncio.sleep(3600)
    host, _, port = options.addr.rpartition(":")
    daemon = ScriptedDaemon(options.fault, options.on, options.note)
    try:
        stubborn = options.fault in ("ignores_sigterm", "hangs_stubborn")
        await serve_forever(daemon.answer, host, int(port), stubborn=stubborn)
    except OSError as error:
        sys.stderr.write(f"scripted: cannot listen on {options.addr}: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
