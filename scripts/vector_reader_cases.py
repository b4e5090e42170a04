"""Cases from the vectors of readers and rerankers."""

from collections.abc import Sequence
from typing import Any

from memconform.contract.terms import terms
from memconform.oracle.bm25 import bm25
from vector_steps import FAKE, HIDDEN, SCRIPTED, SENT, ask, case, ranked, script, search, vectors


def reader() -> list[dict[str, Any]]:
    """Without an upstream: bm25 puts the chunks in the order of the vectors, if it finds them."""
    found = vectors("reader")
    near: list[tuple[str, dict[str, Any]]] = []
    far: list[tuple[str, dict[str, Any]]] = []
    for entry in found["cases"]:
        paths = [f"n{number}.md" for number in range(len(entry["chunks"]))]
        is_near = len(bm25(entry["question"], entry["chunks"])) == len(paths)
        others = _others(entry["question"], entry["chunks"]) if is_near else []
        documents = dict(zip(paths, entry["chunks"], strict=True)) or HIDDEN
        value = {
            "question": entry["question"],
            "documents": {**documents, **{f"x{n}.md": text for n, text in enumerate(others)}},
            "paths": paths,
            "deltas": entry["deltas"],
            "answer": entry["answer"],
            "cited": [] if entry["source"] is None else [paths[entry["source"]]],
        }
        (near if is_near else far).append((entry.get("note", ""), value))
    expected = {
        "ranked": {"event": "retrieve", "at": "/0/chunks/*/path", "is": "${v.paths}"},
        "deltas": {"event": "answer_delta", "at": "/*/text", "is": "${v.deltas}"},
        "answer": {"fold": "${v.answer}"},
        "cited": {"event": "citation", "at": "/*/path", "is": "${v.cited}"},
    }
    question = {"question": "${v.question}", "filters": {"pathPrefix": "n"}}
    fake = {"JB_LLM_PROVIDER": "fake"}
    words = found["stop_words"]
    stop = {"question": " ".join(words), "text": "\n".join(f"Once {word}." for word in words)}
    return [
        case("reader", "The fake reader answers as in the vectors", ["ask.reader.fake"], near,
             daemon={"env": fake}, setup=[{"store": "${v.documents}"}],
             steps=ask({**question, "mode": "bm25"}, expected)),
        case("reader-far", "The fake reader answers as in the vectors from what shares no term",
             ["ask.reader.fake"], far, modes=["semantic"], daemon={"env": {**FAKE["env"], **fake}},
             setup=[{"store": "${v.documents}"}],
             steps=ask({**question, "mode": "semantic"}, expected)),
        {"id": "vector-reader-stop-words", "title": "No stop word of the vectors counts",
         "rules": ["ask.reader.fake"], "daemon": {"env": {"JB_LLM_PROVIDER": "fake"}},
         "documents": {"a.md": stop["text"]},
         "steps": ask({"question": stop["question"], "mode": "bm25"}, {
             "found": {"event": "retrieve", "at": "/0/chunks/*/path", "is": ["a.md"]},
             "nothing": {"fold": "No information available."},
         })},
    ]  # fmt: skip


def _others(question: str, chunks: Sequence[str]) -> list[str]:
    """Return texts of other documents with which bm25 finds the chunks in their order.

    Each consists of a term of the question: a term that is frequent in the brain counts little.
    """
    for other in ([], *([term] * 5 for term in terms(question))):
        scores = bm25(question, [*chunks, *other])
        ranked = sorted(range(len(chunks)), key=lambda number: (-scores[number], number))
        if ranked == list(range(len(chunks))):
            return other
    raise ValueError(f"no documents put the chunks of {question!r} in order")


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
                          for chunk in entry["chunks"]} or HIDDEN,
            "rules": [*ranked(texts), {"kind": "chat", "reply": {"text": "Yes."}}],
            "messages": [{"role": "system", "content": found["system"][entry["readerMode"]]},
                         {"role": "user", "content": entry["user"]}],
        }))  # fmt: skip
    cited: list[tuple[str, dict[str, Any]]] = []
    empty: list[tuple[str, dict[str, Any]]] = []
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
    setup = [script("${v.rules}"), {"store": "${v.documents}"}]
    judge = {**SCRIPTED, "env": {"JB_RERANK_PROVIDER": "llm", "JB_LLM_PROVIDER": "openai",
             "JB_LLM_MODEL": "extractive", "OPENAI_BASE_URL": "{upstream}/v1",
             "OPENAI_API_KEY": "scripted"}}  # fmt: skip
    question = {"question": "Where is the heron?", "mode": "bm25", "topK": 20}
    rerank = search(query="heron", mode="hybrid-rerank")
    system = {"role": "system", "content": found["rerankSystem"]}
    return [
        case("prompt", "A model is sent the messages of the vectors", ["ask.reader.prompt"], asked,
             modes=["semantic"], profiles=["ask"], daemon=SCRIPTED, setup=setup,
             steps=[*ask({"$merge": ["${v.ask}", {"mode": "semantic"}]},
                         {"answer": {"fold": "Yes."}}),
                    SENT | {"expect": {"sent": {"at": "/requests", "is": {"$contains": {
                        "kind": "chat", "body": {"messages": "${v.messages}"}}}}}}]),
        case("citations", "The notes that an answer cites are those of the vectors",
             ["ask.reader.citation"], cited, daemon=SCRIPTED, setup=setup,
             steps=ask(question, {
                 "answer": {"fold": "${v.answer}"},
                 "cited": {"event": "citation", "at": "/*/path", "is": "${v.cited}"},
             })),
        case("citations-empty", "An empty answer is a failure, and cites nothing",
             ["ask.upstream", "ask.error"], empty, daemon=SCRIPTED, setup=setup,
             steps=ask(question, {
                 "failed": {"events": "retrieve error done"},
                 "cited": {"event": "citation", "is": "${v.cited}"},
             })),
        case("rerank-reply", "The scores of a reranking model's reply are those of the vectors",
             ["upstream.rerank"], good, modes=["hybrid-rerank"], daemon=judge, setup=setup,
             steps=[rerank | {"expect": {
                 "scores": {"at": "/chunks", "is": {"$multiset": "${v.chunks}"}}}},
                 SENT | {"expect": {"sent": {"at": "/requests", "is": {"$contains": {
                     "kind": "chat", "body": {"messages": {"$prefix": [system]}}}}}}}]),
        case("rerank-reply-bad",
             "A reply of a reranking model that the vectors reject is a failure",
             ["upstream.rerank"], bad, modes=["hybrid-rerank"], daemon=judge, setup=setup,
             steps=[rerank | {"expect": {"failed": "bad_gateway"}}]),
    ]  # fmt: skip
