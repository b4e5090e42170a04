"""The upstream's terms, feature hash and reader match the test vectors of the SDKs."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from memconform.contract.terms import terms
from memconform.upstream.chat_apis import BadRequestError
from memconform.upstream.extractive import STOP_WORDS, complete, lexical_scores
from memconform.upstream.featurehash import feature_hash
from memconform.upstream.reader_prompt import read_prompt
from memconform.upstream.vector_apis import rerank

_FOLDER = Path(__file__).parents[4] / "sdks" / "vectors"


def _vectors(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("case", _vectors("terms")["cases"], ids=lambda case: case["text"])
def test_terms(case: dict[str, Any]) -> None:
    assert terms(case["text"]) == case["terms"]


@pytest.mark.parametrize("case", _vectors("hash")["cases"], ids=lambda case: case["text"][:20])
def test_feature_hash(case: dict[str, Any]) -> None:
    vector = feature_hash(case["text"])
    as_float32 = struct.unpack("256f", struct.pack("256f", *vector))
    assert {str(i): x for i, x in enumerate(as_float32) if x} == case["values"]


def test_stop_words() -> None:
    assert sorted(STOP_WORDS) == _vectors("reader")["stop_words"]


@pytest.mark.parametrize("case", _vectors("reader")["cases"], ids=str)
def test_extractive_reply_matches_the_fake_reader(case: dict[str, Any]) -> None:
    notes = [f"[{n}] raw/{n}.md\n{text}" for n, text in enumerate(case["chunks"], 1)]
    user = "\n\n".join(["Notes:", *notes, f"Question: {case['question']}"])
    marker = "" if case["source"] is None else f" [{case['source'] + 1}]"
    assert complete("", [user]) == case["answer"] + marker


@pytest.mark.parametrize("case", _vectors("prompt")["cases"], ids=lambda case: case["question"])
def test_parses_the_prompts_of_the_contract(case: dict[str, Any]) -> None:
    prompt = read_prompt("", [case["user"]])
    assert prompt.question == case["question"]
    texts = [(str(n), f"\n{chunk['text']}") for n, chunk in enumerate(case["chunks"], 1)]
    assert [(number, text.rstrip("\n")) for number, text in prompt.notes] == texts
    scores = json.loads(complete(_vectors("prompt")["rerankSystem"], [case["user"]]))["scores"]
    assert len(scores) == len(case["chunks"])


def test_lexical_scores_are_fractions_of_the_query_s_terms() -> None:
    assert lexical_scores("red lamp", ["a red lamp", "lamps", "red", ""]) == [1.0, 0.0, 0.5, 0.0]


async def test_a_reranking_in_the_format_of_text_embeddings_inference() -> None:
    texts = ["lamps", "a red lamp"]
    assert await rerank({"query": "red lamp", "texts": texts, "raw_scores": True}) == [
        {"index": 1, "score": 1.0},
        {"index": 0, "score": 0.0},
    ]
    with pytest.raises(BadRequestError, match="texts"):
        await rerank({"query": "red lamp", "texts": []})
