"""Answers to requests for embeddings and for a reranking."""

import asyncio
import base64
import struct
from collections.abc import Sequence
from typing import Any

from memconform.upstream.chat_apis import BadRequestError
from memconform.upstream.embedders import get_embedder
from memconform.upstream.extractive import lexical_scores
from memconform.upstream.request_bodies import MAX_DOCUMENTS, MAX_TEXTS


def _texts(value: object, key: str, limit: int) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and len(value) > limit:
        raise BadRequestError(f"{key}: must have at most {limit:,} texts")
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return value
    raise BadRequestError(f"{key}: must be a string or a non-empty list of strings")


async def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's embedding API; raises as `_vectors`."""
    texts, vectors = await _vectors(body)
    encode = _base64 if body.get("encoding_format") == "base64" else list
    words = sum(len(text.split()) for text in texts)
    return {
        "object": "list",
        "model": body["model"],
        "data": [
            {"object": "embedding", "index": n, "embedding": encode(vector)}
            for n, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


async def ollama_embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Ollama's own embedding API (https://docs.ollama.com/api/embed); raises as `_vectors`."""
    texts, vectors = await _vectors(body)
    words = sum(len(text.split()) for text in texts)
    return {
        "model": body["model"],
        "embeddings": [list(vector) for vector in vectors],
        "prompt_eval_count": words,
    }


async def _vectors(body: dict[str, Any]) -> tuple[list[str], list[Sequence[float]]]:
    """The texts of a request for embeddings, and the vector of each.

    Raises:
        BadRequestError: if the texts, the model or the dimensions are invalid.
        UsageError: as `Embedder.embed` does, or for an unknown model.
    """
    texts = _texts(body.get("input"), "input", MAX_TEXTS)
    model = body.get("model")
    if not isinstance(model, str):
        raise BadRequestError("model: must be a string")
    embedder = get_embedder(model)
    if body.get("dimensions", embedder.dimensions) != embedder.dimensions:
        raise BadRequestError(f"dimensions: must be {embedder.dimensions} for {model}")
    # In a thread, so that other requests are served meanwhile.
    return texts, await asyncio.to_thread(embedder.embed, texts)


def _base64(vector: Sequence[float]) -> str:
    """Little-endian float32s, as OpenAI encodes embeddings."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


async def rerank(body: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
    """Rank documents by the words that they share with the query.

    In Cohere's format, or, for a request with `texts`, in that of Hugging Face's text embeddings
    inference (https://huggingface.github.io/text-embeddings-inference/).

    Raises:
        BadRequestError: if the query or the documents are invalid.
    """
    query = body.get("query")
    if not isinstance(query, str):
        raise BadRequestError("query: must be a string")
    key = "texts" if "texts" in body and "documents" not in body else "documents"
    scores = lexical_scores(query, _texts(body.get(key), key, MAX_DOCUMENTS))
    ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
    if key == "texts":
        return [{"index": index, "score": scores[index]} for index in ranked]
    top = body.get("top_n")
    return {
        "model": "lexical",
        "results": [
            {"index": index, "relevance_score": scores[index]}
            for index in ranked[: top if isinstance(top, int) else None]
        ],
    }
