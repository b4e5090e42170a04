"""The harness's own chunking, tested with the vectors that every SDK is tested with."""

import json
from pathlib import Path
from typing import Any

import pytest

from memconform.contract.chunking import bodies, cut

_VECTORS = Path(__file__).parents[4] / "sdks" / "vectors" / "chunking.json"


@pytest.mark.parametrize("case", json.loads(_VECTORS.read_text(encoding="utf-8"))["cases"])
def test_chunks_match_the_vectors(case: dict[str, Any]) -> None:
    text = "".join(piece * times for piece, times in case["text"]).encode()
    chunks = cut(text)
    assert [len(chunk) for chunk in chunks] == case["bytes"]
    assert b"".join(chunks) == text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"plain", [b"plain"]),
        (b"---\ntitle: A\n---\nbody", [b"---\ntitle: A\n---\nbody", b"body"]),
        (b"---\r\ntitle: A\r\n---\r\nbody", [b"---\r\ntitle: A\r\n---\r\nbody", b"body"]),
        (b"---\nno pair\n---\nbody", [b"---\nno pair\n---\nbody"]),
        (b"---\ntitle: A\nbody", [b"---\ntitle: A\nbody"]),
    ],
)
def test_front_matter_may_be_excluded_from_the_text(content: bytes, expected: list[bytes]) -> None:
    assert list(bodies(content)) == expected
