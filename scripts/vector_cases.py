"""Generates the conformance cases that put sdks/vectors on the wire. Run after changing a vector.

Each entry of the vectors becomes a variant of a case, unless no request shows it; those entries
are listed in `UNOBSERVABLE`.
"""

import datetime
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from vector_probes import cosine_vectors, probe, rank_vectors

from memconform.contract.terms import terms

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "eval/memconform/conformance/cases/25-vectors.yaml"

UNOBSERVABLE = {
    "fusion": "cases without a score for a chunk in the vector leg, which ranks every chunk",
    "hash": "fnv1a32 of the empty text and of a single letter, which are not terms",
    "dates": "moments of the empty text and before the year 1 as a target, a day after which is needed",
}

_SEARCH = "POST ${brain_url}/search"
_FAKE = {"env": {"JB_EMBED_PROVIDER": "fake"}}
_HIDDEN = {"_hidden.md": "Not indexed."}
_SCRIPTED = {"upstream": "scripted"}
_FIRST_DAY = datetime.date.min.toordinal() - datetime.date(1970, 1, 1).toordinal()
_SENT = {"http": "GET /_control/requests", "server": "upstream"}


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
    return {"http": _SEARCH, "json": body}


def ingest(path: str, text: Any) -> dict[str, Any]:  # noqa: ANN401 - a generator, too
    """The beginning of a step that ingests one document."""
    document = {"path": path, "contentType": "text/plain", "contentBase64": {"$base64": text}}
    return {"http": "POST ${brain_url}/ingest/file", "json": document}


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
        others = {str(value) for value in metadata.values()} - set(tags)
        tagged += [(note, {"text": text, "query": words[-1], "tag": tag, "paths": ["a.md"]})
                   for tag in dict.fromkeys(tags)]  # fmt: skip
        tagged += [(f"not {note}", {"text": text, "query": words[-1], "tag": tag, "paths": []})
                   for tag in sorted(others)[:1]]  # fmt: skip
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
             ["core.rank.terms", "core.rank.feature-hash"], some, modes=["semantic"], daemon=_FAKE,
             documents={"a/text.md": "${v.text}", "b/terms.md": "${v.terms}"},
             steps=[
                 search(query="${v.terms}", mode="semantic", filters={"pathPrefix": "a/"}) | {
                     "expect": {"document": one}},
                 search(query="${v.text}", mode="semantic", filters={"pathPrefix": "b/"}) | {
                     "expect": {"query": one}},
             ]),
        case("terms-none", "A query of which the vectors have no term finds nothing",
             ["core.rank.terms"], none, modes=["semantic"], daemon=_FAKE,
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
             ["core.rank.feature-hash"], components, modes=["semantic"], daemon=_FAKE,
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
             ["core.chunk.cut", "core.chunk.id"], texts, modes=["semantic"], daemon=_FAKE,
             steps=[ingest("a.txt", text),
                    search(query="heron", mode="semantic", topK=1000) | {
                        "expect": {"chunks": {"at": "/chunks", "is": {"$multiset": "${v.chunks}"}}},
                    }]),
    ]  # fmt: skip


def _expression(text: str) -> str:
    runs = re.finditer(r"(.)\1*", text, re.DOTALL)
    return rf"\A{''.join(f'(?:{re.escape(run[1])}){{{len(run[0])}}}' for run in runs)}\Z"


def reader() -> list[dict[str, Any]]:
    """Scripted embeddings put the chunks in the order of the vectors."""
    found = vectors("reader")
    entries = []
    for entry in found["cases"]:
        paths = [f"n{number}.md" for number in range(len(entry["chunks"]))]
        entries.append((entry.get("note", ""), {
            "question": entry["question"],
            "documents": dict(zip(paths, entry["chunks"], strict=True)) or _HIDDEN,
            "rules": _ranked(entry["chunks"]),
            "paths": paths,
            "deltas": entry["deltas"],
            "answer": entry["answer"],
            "cited": [] if entry["source"] is None else [paths[entry["source"]]],
        }))  # fmt: skip
    words = found["stop_words"]
    stop = {"question": " ".join(words), "text": "\n".join(f"Once {word}." for word in words)}
    return [
        case("reader", "The fake reader answers as in the vectors", ["ask.reader.fake"], entries,
             modes=["semantic"], daemon={**_SCRIPTED, "env": {"JB_LLM_PROVIDER": "fake"}},
             setup=[_script("${v.rules}"), {"store": "${v.documents}"}],
             steps=_ask({"question": "${v.question}", "mode": "semantic"}, {
                 "ranked": {"event": "retrieve", "at": "/0/chunks/*/path", "is": "${v.paths}"},
                 "deltas": {"event": "answer_delta", "at": "/*/text", "is": "${v.deltas}"},
                 "answer": {"fold": "${v.answer}"},
                 "cited": {"event": "citation", "at": "/*/path", "is": "${v.cited}"},
             })),
        {"id": "vector-reader-stop-words", "title": "No stop word of the vectors counts",
         "rules": ["ask.reader.fake"], "daemon": {"env": {"JB_LLM_PROVIDER": "fake"}},
         "documents": {"a.md": stop["text"]},
         "steps": _ask({"question": stop["question"], "mode": "bm25"}, {
             "found": {"event": "retrieve", "at": "/0/chunks/*/path", "is": ["a.md"]},
             "nothing": {"fold": "No information available."},
         })},
    ]  # fmt: skip


def prompts() -> list[dict[str, Any]]:
    """What a model is sent, and what is made of its reply."""
    found = vectors("prompt")
    asked = []
    for entry in found["cases"]:
        texts = [chunk["text"] for chunk in entry["chunks"]]
        body = {key: entry[key] for key in ("question", "questionDate", "readerMode")
                if key in entry}  # fmt: skip
        asked.append((f"{entry['readerMode']} {len(texts)} {entry.get('note', '')}", {
            "ask": body,
            "documents": {chunk["path"]: {k: v for k, v in chunk.items() if k != "path"}
                          for chunk in entry["chunks"]} or _HIDDEN,
            "rules": [*_ranked(texts), {"kind": "chat", "reply": {"text": "Yes."}}],
            "messages": [{"role": "system", "content": found["system"][entry["readerMode"]]},
                         {"role": "user", "content": entry["user"]}],
        }))  # fmt: skip
    cited, empty = [], []
    for entry in found["citations"]:
        paths = [f"n{number}.md" for number in range(entry["notes"])]
        value = {
            "documents": dict.fromkeys(paths, "The heron waits."),
            "rules": [{"kind": "chat", "reply": {"text": entry["answer"]}}],
            "answer": entry["answer"],
            "cited": [paths[number] for number in entry["cited"]],
        }
        (cited if entry["answer"] else empty).append((entry["answer"][:40], value))
    good, bad = [], []
    for entry in found["replies"]:
        paths = [f"n{number}.md" for number in range(entry["documents"])]
        value = {
            "documents": dict.fromkeys(paths, "The heron waits."),
            "rules": [{"kind": "chat", "reply": {"text": entry["reply"]}}],
        }
        if entry["scores"] is None:
            bad.append((entry.get("note", entry["reply"][:30]), value))
            continue
        scores = [{"path": path, "score": score}
                  for path, score in zip(paths, entry["scores"], strict=True)]  # fmt: skip
        good.append((entry.get("note", ""), value | {"chunks": scores}))
    setup = [_script("${v.rules}"), {"store": "${v.documents}"}]
    judge = {**_SCRIPTED, "env": {"JB_RERANK_PROVIDER": "llm", "JB_LLM_PROVIDER": "openai",
             "JB_LLM_MODEL": "extractive", "OPENAI_BASE_URL": "{upstream}/v1",
             "OPENAI_API_KEY": "scripted"}}  # fmt: skip
    question = {"question": "Where is the heron?", "mode": "bm25", "topK": 20}
    rerank = search(query="heron", mode="hybrid-rerank")
    system = {"role": "system", "content": found["rerankSystem"]}
    return [
        case("prompt", "A model is sent the messages of the vectors", ["ask.reader.prompt"], asked,
             modes=["semantic"], profiles=["ask"], daemon=_SCRIPTED, setup=setup,
             steps=[*_ask({"$merge": ["${v.ask}", {"mode": "semantic"}]}, {"answer": {"fold": "Yes."}}),
                    _SENT | {"expect": {"sent": {"at": "/requests", "is": {"$contains": {
                        "kind": "chat", "body": {"messages": "${v.messages}"}}}}}}]),
        case("citations", "The notes that an answer cites are those of the vectors",
             ["ask.reader.citation"], cited, daemon=_SCRIPTED, setup=setup,
             steps=_ask(question, {
                 "answer": {"fold": "${v.answer}"},
                 "cited": {"event": "citation", "at": "/*/path", "is": "${v.cited}"},
             })),
        case("citations-empty", "An empty answer is a failure, and cites nothing",
             ["ask.upstream", "ask.error"], empty, daemon=_SCRIPTED, setup=setup,
             steps=_ask(question, {
                 "failed": {"events": "retrieve error done"},
                 "cited": {"event": "citation", "is": "${v.cited}"},
             })),
        case("rerank-reply", "The scores of a reranking model's reply are those of the vectors",
             ["upstream.rerank"], good, modes=["hybrid-rerank"], daemon=judge, setup=setup,
             steps=[rerank | {"expect": {
                 "scores": {"at": "/chunks", "is": {"$multiset": "${v.chunks}"}}}},
                 _SENT | {"expect": {"sent": {"at": "/requests", "is": {"$contains": {
                     "kind": "chat", "body": {"messages": {"$prefix": [system]}}}}}}}]),
        case("rerank-reply-bad", "A reply of a reranking model that the vectors reject is a failure",
             ["upstream.rerank"], bad, modes=["hybrid-rerank"], daemon=judge, setup=setup,
             steps=[rerank | {"expect": {"failed": "bad_gateway"}}]),
    ]  # fmt: skip


def fusion() -> list[dict[str, Any]]:
    """Scripted embeddings and rerankings make the scores of the vectors."""
    found = vectors("fusion")
    rounded = [("", {"rules": [{"kind": "rerank", "reply": {"body": {"results": [
        {"index": 0, "relevance_score": entry["score"]}]}}}], "rounded": entry["rounded"]})
        for entry in found["rounding"]]  # fmt: skip
    kernel = []
    for entry in found["kernel"]:
        query, [vector] = cosine_vectors([entry["cosine"]])
        rules = [_embedding(vector, "heron waits"), _embedding(query)]
        kernel.append((f"cosine {entry['cosine']}", {
            "rules": rules, "score": entry["inverse-l2"]}))  # fmt: skip
    fused, nothing = [], []
    for entry in found["cases"]:
        keyword, vector = dict(entry["keyword"]), dict(entry["vector"])
        names = sorted({*keyword, *vector})
        if not names:
            nothing.append((entry["fusion"], {"fusion": entry["fusion"]}))
        # One size of pool for both legs, and each chunk has a vector.
        if not names or len(keyword) != len(vector):
            continue
        query, rows = cosine_vectors([vector.get(name, -0.5) for name in names])
        tuning = {key: entry[key] for key in ("fusion", "alpha") if key in entry}
        if "k" in entry:
            tuning["rrfK"] = entry["k"]
        fused.append((entry["fusion"], {
            "rules": [*(_embedding(row, f"word{name}") for row, name in zip(rows, names, strict=True)),
                      _embedding(query)],
            "documents": {f"{name}.md": f"word{name}" for name in names},
            # Equal words have equal scores, and a word that is repeated counts as often.
            "query": " ".join(f"Word{name}" for name, score in keyword.items() for _ in range(int(score))),
            "pool": len(keyword), "tuning": tuning,
            "chunks": [{"path": f"{name}.md", "score": {"$approx": [score, 1e-8]}}
                       for name, score in entry["fused"]],
        }))  # fmt: skip
    hybrid = search(query="${v.query}", mode="hybrid", candidateK="${v.pool}", tuning="${v.tuning}")
    return [
        case("rounding", "Scores are rounded as in the vectors", ["core.search.order"], rounded,
             modes=["hybrid-rerank"], daemon=_SCRIPTED, documents={"a.md": "The heron waits."},
             setup=[_script("${v.rules}")],
             steps=[search(query="heron", mode="hybrid-rerank") | {"expect": {
                 "score": {"at": "/chunks/*/score", "is": ["${v.rounded}"]}}}]),
        case("kernel", "The kernel makes the scores of the vectors", ["core.rank.kernel"], kernel,
             level="should", modes=["semantic"], daemon=_SCRIPTED,
             setup=[_script("${v.rules}"), ingest("a.md", "The heron waits.")],
             steps=[search(query="heron", mode="semantic", tuning={"kernel": "inverse-l2"}) | {
                 "expect": {"score": {"at": "/chunks/*/score", "is": [
                     {"$approx": ["${v.score}", 1e-9]}]}}}]),
        case("fusion", "hybrid makes the scores of the vectors", ["core.rank.hybrid"], fused,
             modes=["hybrid"], daemon=_SCRIPTED,
             setup=[_script("${v.rules}"), {"store": "${v.documents}"}],
             steps=[hybrid | {"expect": {"fused": {"at": "/chunks", "is": "${v.chunks}"}}}]),
        case("fusion-none", "hybrid of two empty legs is empty", ["core.rank.hybrid"], nothing,
             modes=["hybrid"], daemon=_FAKE, documents={"a.md": "The heron waits."},
             steps=[search(query="heron", mode="hybrid") | {
                        "require": [{"at": "/chunks", "is": {"$items": [1, 1]}}]},
                    search(query="?", mode="hybrid", tuning={"fusion": "${v.fusion}"}) | {
                        "expect": {"none": {"at": "/chunks", "is": []}}}]),
    ]  # fmt: skip


def dates() -> list[dict[str, Any]]:
    """A moment shows in the decay of one day; scores of the vectors are those of rrf."""
    found = vectors("dates")
    good, bad, decays = [], [], []
    for entry in found["moments"]:
        text, seconds = entry["text"], entry["seconds"]
        (bad if seconds is None else good).append((text, text))
        if seconds is None:
            decays.append((f"not {text}", {"date": text, "now": "2024-01-31", "score": 0}))
        else:
            decays.append((text, {"date": text, "now": _date_time(seconds + 86_400),
                                  "score": 0.367879441}))  # fmt: skip
    scored = [(_what(entry), _dated(entry)) for entry in found["cases"]]
    recency = {"now": "${v.now}", "relevance": 0, "weight": 1, "decayDays": 1}
    tuning = {"fusion": "rrf", "recency": recency}
    dated = {"a.md": {"text": "heron", "metadata": {"date": "${v.date}"}}}
    ask = search(query="heron", mode="bm25", questionDate="${v}")
    return [
        case("dates", "A date of the vectors is accepted", ["core.search.refuse"], good,
             documents={"a.md": "heron"}, steps=[ask | {
                 "expect": {"accepted": {"at": "/chunks/*/path", "is": ["a.md"]}}}]),
        case("dates-bad", "What the vectors do not accept as a date is rejected",
             ["core.search.refuse"], bad, documents={"a.md": "heron"},
             steps=[ask | {"expect": {"rejected": "validation_error"}}]),
        case("dates-age", "The age of a date of the vectors is exact to the second",
             ["core.rank.recency"], decays, level="should", modes=["hybrid"], daemon=_FAKE,
             documents=dated, steps=[search(query="heron", mode="hybrid", tuning=tuning) | {
                 "expect": {"score": {"at": "/chunks/*/score", "is": [
                     {"$approx": ["${v.score}", 1.5e-9]}]}}}]),
        case("dates-scores", "Dates make the scores of the vectors",
             ["core.rank.recency", "core.rank.temporal"], scored, level="should",
             modes=["hybrid"], daemon=_FAKE, documents="${v.documents}",
             steps=[search(query="${v.query}", mode="hybrid", topK=100, tuning="${v.tuning}") | {
                 "expect": {"scores": {"at": "/chunks", "is": {"$subset": "${v.chunks}"}}}}]),
    ]  # fmt: skip


def _what(entry: dict[str, Any]) -> str:
    return " ".join(key for key in ("recency", "temporal") if entry[key])


def _dated(entry: dict[str, Any]) -> dict[str, Any]:
    """Documents whose scores by rrf are those of the entry: 2 / (5 + rank), of equal texts by path.

    Documents without a date have the ranks between. If all scores are 0, so is alpha, and the query
    has no word of the documents.
    """
    is_zero = not any(score for score, _ in entry["hits"])
    ranks = [number if is_zero else round(2 / score - 5) for number, (score, _) in enumerate(entry["hits"])]
    by_rank = dict(zip(ranks, entry["hits"], strict=True))
    documents: dict[str, Any] = {}
    for rank in range(ranks[-1] + 1):
        _, date = by_rank.get(rank, (None, None))
        documents[f"d{rank:02}.md"] = {"text": "heron", "metadata": {"date": date}} if date else "heron"
    tuning = {key: entry[key] for key in ("recency", "temporal") if entry[key]}
    return {
        "documents": documents,
        "query": "kettle" if is_zero else "heron",
        "tuning": {**tuning, **({"alpha": 0} if is_zero else {"fusion": "rrf"})},
        "chunks": [{"path": f"d{rank:02}.md", "score": {"$approx": [score, 2.5e-9]}}
                   for rank, score in zip(ranks, entry["scores"], strict=True)],
    }  # fmt: skip


def _date_time(seconds: int) -> str:
    """Seconds from 1970 as an RFC 3339 date-time, which may be in the year 0."""
    days, clock = divmod(seconds, 86_400)
    years = 0
    while days < _FIRST_DAY:
        days, years = days + 146_097, years + 400
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days)
    hours, rest = divmod(clock, 3_600)
    time = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{day.year - years:04}-{day.month:02}-{day.day:02}T{time}Z"


def _script(rules: str) -> dict[str, Any]:
    return {"http": "PUT /_control/script", "server": "upstream", "json": {"rules": rules}}


def _ask(body: dict[str, Any], expect: dict[str, Any]) -> list[dict[str, Any]]:
    stream = {"stream": "POST ${brain_url}/ask", "name": "answer", "json": body}
    return [stream, {"await": "answer", "expect": expect}]


def _embedding(vector: Sequence[float], contains: str = "") -> dict[str, Any]:
    data = [{"object": "embedding", "index": 0, "embedding": list(vector)}]
    body = {"object": "list", "model": "fh256-1", "data": data}
    rule = {"kind": "embeddings", "reply": {"body": body}}
    return {**rule, "contains": contains} if contains else rule


def _ranked(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Rules that embed texts so that a query finds them in this order."""
    query, rows = rank_vectors(len(texts))
    # The upstream compares with the request as JSON; the longest first, if one contains another.
    pairs = sorted(zip(texts, rows, strict=True), key=lambda pair: -len(pair[0]))
    quoted = [(json.dumps(text, ensure_ascii=False), row) for text, row in pairs]
    return [*(_embedding(row, text) for text, row in quoted), _embedding(query)]


def render() -> str:
    """Render the case file."""
    cases = [*front_matter(), *term_cases(), *hash_cases(), *chunking(), *dates(), *fusion(),
             *reader(), *prompts()]  # fmt: skip
    head = "# Made by scripts/vector_cases.py from sdks/vectors; do not edit.\n"
    return head + yaml.dump(cases, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
    print(TARGET.name)
