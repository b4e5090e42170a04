"""Cases from the vectors of texts: front matter, terms, hash and chunking."""

import hashlib
import re
from typing import Any

from memconform.contract.terms import terms
from vector_probes import probe
from vector_steps import FAKE, case, ingest, search, vectors


def front_matter() -> list[dict[str, Any]]:
    """Text, title, metadata and tags, as a search shows them."""
    rules = ["core.chunk.front-matter"]
    shown, counted, tagged = [], [], []
    for entry in vectors("frontmatter")["cases"]:
        note, text, body = entry.get("note", ""), entry["text"], entry["body"]
        counted.append((note, {"text": text, "chunks": int(body != "")}))
        words = terms(body)
        if not words:
            continue
        metadata = entry["metadata"]
        absent = {"$in": [{"$equals": {}}, {"$absent": True}]}
        shown.append((note, {
            "text": text,
            "query": words[-1],
            "body": body,
            "title": {"$absent": True} if entry["title"] is None else entry["title"],
            "metadata": {"$equals": metadata} if metadata else absent,
        }))  # fmt: skip
        tags = entry["tags"]
        others = sorted({str(value) for value in metadata.values()} - set(tags))
        if isinstance(metadata.get("tags"), str):
            others = [metadata["tags"]]
        tagged += [(note, {"text": text, "query": words[-1], "tag": tag, "paths": ["a.md"]})
                   for tag in dict.fromkeys(tags)]  # fmt: skip
        tagged += [(f"not {note}", {"text": text, "query": words[-1], "tag": tag, "paths": []})
                   for tag in others[:1]]  # fmt: skip
    document = {"a.md": "${v.text}"}
    return [
        case("front-matter", "Front matter is split off as the vectors have it", rules, shown,
             documents=document,
             steps=[search(query="${v.query}", mode="bm25") | {"expect": {
                 "body": {"at": "/chunks/*/text", "is": ["${v.body}"]},
                 "title": {"at": "/chunks/0", "is": {"title": "${v.title}"}},
                 "metadata": {"at": "/chunks/0", "is": {"metadata": "${v.metadata}"}},
             }}]),
        case("front-matter-chunks", "A document without text after its front matter has no chunk",
             [*rules, "core.chunk.cut"], counted,
             steps=[ingest("a.md", "${v.text}") | {
                 "expect": {"chunks": {"at": "/chunkCount", "is": "${v.chunks}"}}}]),
        case("front-matter-tags", "Filters see the tags of front matter, and nothing else as a tag",
             [*rules, "core.filter.keys"], tagged, documents=document,
             steps=[
                 search(query="${v.query}", mode="bm25") | {
                     "require": [{"at": "/chunks/*/path", "is": ["a.md"]}]},
                 search(query="${v.query}", mode="bm25", filters={"tags": ["${v.tag}"]}) | {
                     "expect": {"found": {"at": "/chunks/*/path", "is": "${v.paths}"}}},
             ]),
    ]  # fmt: skip


def term_cases() -> list[dict[str, Any]]:
    """Terms show in cosines: equal terms in equal order have the cosine 1."""
    entries = vectors("terms")["cases"]
    some = [(e.get("note", ""), {"text": e["text"], "terms": " ".join(e["terms"])})
            for e in entries if e["terms"]]  # fmt: skip
    none = [(e.get("note", ""), e["text"]) for e in entries if not e["terms"] and e["text"].strip()]
    one = {"at": "/chunks/*/score", "is": [{"$approx": [1, 1e-6]}]}
    return [
        case("terms", "A text has the terms of the vectors, as a document and as a query",
             ["core.rank.terms", "core.rank.feature-hash"], some, modes=["semantic"], daemon=FAKE,
             documents={"a/text.md": "${v.text}", "b/terms.md": "${v.terms}"},
             steps=[
                 search(query="${v.terms}", mode="semantic", filters={"pathPrefix": "a/"}) | {
                     "expect": {"document": one}},
                 search(query="${v.text}", mode="semantic", filters={"pathPrefix": "b/"}) | {
                     "expect": {"query": one}},
             ]),
        case("terms-none", "A query of which the vectors have no term finds nothing",
             ["core.rank.terms"], none, modes=["semantic"], daemon=FAKE,
             documents={"a.md": "${v}", "b.md": "The heron waits."},
             steps=[
                 search(query="heron", mode="semantic") | {
                     "require": [{"at": "/chunks", "is": {"$items": [2, 2]}}]},
                 search(query="${v}", mode="semantic") | {
                     "expect": {"semantic": {"at": "/chunks", "is": []}}},
                 search(query="${v}", mode="bm25") | {
                     "expect": {"bm25": {"at": "/chunks", "is": []}}},
             ]),
    ]  # fmt: skip


def hash_cases() -> list[dict[str, Any]]:
    """A component shows in the cosine with a word that has no other."""
    found = vectors("hash")
    components = []
    for entry in found["cases"]:
        for index, value in list(entry["values"].items())[:8]:
            word, sign = probe(int(index))
            components.append((f"{entry['text'][:12]} {index}", {
                "text": entry["text"], "word": word, "score": round(sign * value, 9)}))  # fmt: skip
    for entry in found["fnv1a32"]:
        if terms(entry["text"]) == [entry["text"]]:
            word, sign = probe(entry["hash"] & 255)
            score = sign * (-1 if entry["hash"] >> 31 else 1)
            components.append((entry["text"], {
                "text": entry["text"], "word": word, "score": score}))  # fmt: skip
    return [
        case("hash", "A component of a feature-hash vector is that of the vectors",
             ["core.rank.feature-hash"], components, modes=["semantic"], daemon=FAKE,
             documents={"a.md": "${v.text}"},
             steps=[search(query="${v.word}", mode="semantic") | {"expect": {
                 "score": {"at": "/chunks/*/score", "is": [{"$approx": ["${v.score}", 1e-7]}]}}}]),
    ]  # fmt: skip


def chunking() -> list[dict[str, Any]]:
    """Chunks are compared as a whole, by regular expressions of their runs."""
    counts, texts = [], []
    document = hashlib.sha256(b"a.txt").hexdigest()[:32]
    for entry in vectors("chunking")["cases"]:
        note = entry.get("note", "")
        parts = [{"$repeat": {"text": text, "times": times}} for text, times in entry["text"]]
        counts.append((note, {"parts": parts, "chunks": len(entry["bytes"])}))
        if not entry["bytes"]:
            continue
        data = b"".join(text.encode() * times for text, times in entry["text"])
        chunks, start = [], 0
        for ordinal, size in enumerate(entry["bytes"]):
            expression = _expression(data[start : start + size].decode())
            chunks.append({"chunkId": f"{document}#{ordinal}", "text": {"$regex": expression}})
            start += size
        texts.append((note, {"parts": parts, "chunks": chunks}))
    text = {"$text": "${v.parts}"}
    return [
        case("chunk-count", "A text has as many chunks as in the vectors", ["core.chunk.cut"],
             counts, steps=[ingest("a.txt", text) | {
                 "expect": {"chunks": {"at": "/chunkCount", "is": "${v.chunks}"}}}]),
        case("chunk-text", "The chunks of a text are those of the vectors",
             ["core.chunk.cut", "core.chunk.id"], texts, modes=["semantic"], daemon=FAKE,
             steps=[ingest("a.txt", text),
                    search(query="heron", mode="semantic", topK=1000) | {
                        "expect": {"chunks": {"at": "/chunks", "is": {"$multiset": "${v.chunks}"}}},
                    }]),
    ]  # fmt: skip


def _expression(text: str) -> str:
    runs = re.finditer(r"(.)\1*", text, re.DOTALL)
    return rf"\A{''.join(f'(?:{re.escape(run[1])}){{{len(run[0])}}}' for run in runs)}\Z"
