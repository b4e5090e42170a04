"""Steps of the cases that are made from sdks/vectors."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vector_probes import rank_vectors

ROOT = Path(__file__).parents[1]

FAKE = {"env": {"JB_EMBED_PROVIDER": "fake"}}
HIDDEN = {"_hidden.md": "Not indexed."}
SCRIPTED = {"upstream": "scripted"}
SENT = {"http": "GET /_control/requests", "server": "upstream"}


def vectors(name: str) -> dict[str, Any]:
    """Read a file of sdks/vectors."""
    content: dict[str, Any] = json.loads((ROOT / f"sdks/vectors/{name}.json").read_text("utf-8"))
    return content


def labelled(entries: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Number the variants of a matrix, and add what their notes say."""
    labels = {}
    for number, (note, value) in enumerate(entries):
        words = re.findall("[a-z0-9]+", note.lower())[:6]
        labels["-".join([f"v{number:02}", *words])] = value
    return labels


def case(name: str, title: str, rules: list[str], entries: Any, **rest: Any) -> dict[str, Any]:  # noqa: ANN401 - any YAML
    """One case whose variants are `entries`: pairs of a note and the value of `${v}`."""
    head = {"id": f"vector-{name}", "title": title, "rules": rules}
    return {**head, "matrix": {"v": labelled(entries)}, **rest}


def search(**body: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """The beginning of a step that searches."""
    return {"http": "POST ${brain_url}/search", "json": body}


def ingest(path: str, text: Any) -> dict[str, Any]:  # noqa: ANN401 - a generator, too
    """The beginning of a step that ingests one document."""
    document = {"path": path, "contentType": "text/plain", "contentBase64": {"$base64": text}}
    return {"http": "POST ${brain_url}/ingest/file", "json": document}


def script(rules: str) -> dict[str, Any]:
    """A step that sets the upstream's script."""
    return {"http": "PUT /_control/script", "server": "upstream", "json": {"rules": rules}}


def ask(body: dict[str, Any], expect: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps that ask a question and check the stream."""
    stream = {"stream": "POST ${brain_url}/ask", "name": "answer", "json": body}
    return [stream, {"await": "answer", "expect": expect}]


def embedding(vector: Sequence[float], contains: str = "") -> dict[str, Any]:
    """A rule of a script that embeds one text."""
    data = [{"object": "embedding", "index": 0, "embedding": list(vector)}]
    body = {"object": "list", "model": "fh256-1", "data": data}
    rule = {"kind": "embeddings", "reply": {"body": body}}
    return {**rule, "contains": contains} if contains else rule


def ranked(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Rules that embed texts so that a query finds them in this order."""
    query, rows = rank_vectors(len(texts))
    # The upstream compares with the request as JSON; the longest first, if one contains another.
    pairs = sorted(zip(texts, rows, strict=True), key=lambda pair: -len(pair[0]))
    quoted = [(json.dumps(text, ensure_ascii=False), row) for text, row in pairs]
    return [*(embedding(row, text) for text, row in quoted), embedding(query)]
