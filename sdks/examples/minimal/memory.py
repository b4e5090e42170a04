"""memory.py HOST PORT: a memory daemon in one file; README.md lists what it lacks."""

import base64
import hashlib
import json
import math
import os
import re
import sqlite3
import sys
import threading
import time
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]

VERSION = {"name": "minimal", "version": "1", "contract": "1"}
VERSION["runId"] = os.environ.get("MEMCONFORM_RUN_ID", "")
MODES = ("auto", "bm25", "semantic", "hybrid", "hybrid-rerank")
TABLES = """
CREATE TABLE docs(path TEXT PRIMARY KEY, text TEXT, metadata TEXT);
CREATE VIRTUAL TABLE terms USING fts5(text, tokenize = 'porter unicode61');
"""
FIND = """
SELECT -bm25(terms), path, docs.text, metadata FROM terms JOIN docs ON docs.rowid = terms.rowid
WHERE terms MATCH ?
"""

brains: dict[str, sqlite3.Connection] = {}
one_at_a_time = threading.Lock()


class Problem(Exception):  # noqa: N818 - the name that problem+json gives it
    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.body = {"status": status, "title": code, "detail": detail, "code": code}


def create(brain: str) -> Body:
    if brain in brains:
        raise Problem(409, "conflict", f"brain {brain} already exists")
    if not re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}", brain):
        raise Problem(400, "validation_error", "brainId: must be 1 to 128 of A-Z a-z 0-9 . _ -")
    brains[brain] = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    brains[brain].executescript(TABLES)
    return counts(brain)


def counts(brain: str) -> Body:
    [size] = brains[brain].execute("SELECT count(*) FROM docs").fetchone()
    return {"brainId": brain, "documents": size, "chunks": size, "vectors": 0, "pending": 0}


def ingest(db: sqlite3.Connection, document: Body) -> Body:
    started, path = time.perf_counter(), document["path"]
    content = base64.b64decode(document["contentBase64"], validate=True)
    text, metadata = content.decode(), json.dumps(document.get("metadata") or {})
    db.execute("DELETE FROM terms WHERE rowid = (SELECT rowid FROM docs WHERE path = ?)", (path,))
    row = db.execute("REPLACE INTO docs VALUES (?, ?, ?)", (path, text, metadata)).lastrowid
    db.execute("INSERT INTO terms(rowid, text) VALUES (?, ?)", (row, nfkc(text)))
    took = (time.perf_counter() - started) * 1e3
    return {"documentId": name(path), "path": path, "chunkCount": 1, "bytes": len(content),
            "tookMs": took}  # fmt: skip


def search(db: sqlite3.Connection, body: Body) -> Body:
    started = time.perf_counter()
    query, top_k, mode = body["query"], body.get("topK", 10), body.get("mode", "auto")
    filters = body.get("filters") or {}
    if not query.strip() or mode not in MODES or top_k not in range(1, 1001):
        raise ValueError("query, mode or topK is invalid")
    if filters.keys() - {"paths"}:
        raise ValueError("only the filter paths is supported")
    terms = re.findall(r"[^\W_]{2,}", nfkc(query).lower())[:256]
    rows = db.execute(FIND, [" OR ".join(f'"{term}"' for term in terms)]) if terms else []
    hits = [(math.floor(score * 1e9 + 0.5) / 1e9, *rest) for score, *rest in rows]
    hits = [hit for hit in hits if hit[1] in filters.get("paths", [hit[1]])]
    hits.sort(key=lambda hit: (-hit[0], hit[1].encode()))
    chunks = [
        {"chunkId": f"{name(path)}#0", "documentId": name(path), "path": path, "score": score,
         "text": text, "metadata": json.loads(metadata)}
        for score, path, text, metadata in hits[:top_k]
    ]  # fmt: skip
    took = (time.perf_counter() - started) * 1e3
    trace = {"requestedMode": mode, "effectiveMode": "bm25", "embedderUsed": False,
             "reranked": False, "fellBackToBm25": mode not in ("auto", "bm25"),
             "candidateK": top_k, "searchMs": took}  # fmt: skip
    return {"chunks": chunks, "tookMs": took, "trace": trace}


def name(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:32]


def nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with one_at_a_time:
                status, body = self.route(json.loads(raw) if raw else {})
        except Problem as problem:
            status, body = problem.status, problem.body
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            status, body = 400, Problem(400, "validation_error", repr(error)).body
        content = json.dumps(body).encode() if body else b""
        self.send_response(status)
        self.send_header("Content-Type", f"application/{'problem+' * (status >= 400)}json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_PUT = answer  # noqa: N815 - http.server's names

    def route(self, body: Body) -> tuple[int, Body]:
        match [self.command, *self.path.split("/")[1:]]:
            case ["GET", "healthz"]:
                return 200, {"ok": True}
            case ["GET", "version"]:
                return 200, VERSION
            case ["GET", "v1", "brains"]:
                return 200, {"items": [{"brainId": brain} for brain in sorted(brains)]}
            case ["POST", "v1", "brains"]:
                return 201, create(body["brainId"])
            case ["GET", "v1", "brains", brain] if brain in brains:
                return 200, counts(brain)
            case ["DELETE", "v1", "brains", brain] if brain in brains:
                if self.headers.get("X-Confirm-Delete") != "yes":
                    raise Problem(
                        428, "confirmation_required", "the header X-Confirm-Delete: yes is missing"
                    )
                brains.pop(brain).close()
                return 204, {}
            case ["POST", "v1", "brains", brain, "ingest", "file"] if brain in brains:
                return 200, ingest(brains[brain], body)
            case ["POST", "v1", "brains", brain, "search"] if brain in brains:
                return 200, search(brains[brain], body)
        raise Problem(404, "not_found", f"{self.command} {self.path}")


if __name__ == "__main__":
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
