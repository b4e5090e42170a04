import json
from pathlib import Path
from typing import Any

import pytest

from memoryd.brain.source import prepare
from memoryd.files.tree import Document
from memoryd.frontmatter import parse

_VECTORS = Path(__file__).parents[2] / "vectors" / "frontmatter.json"


@pytest.mark.parametrize(
    "case", json.loads(_VECTORS.read_text(encoding="utf-8"))["cases"], ids=lambda case: case["text"]
)
def test_front_matter_is_split_off(case: dict[str, Any]) -> None:
    [indexed] = prepare({"a.md": Document(case["text"].encode(), None)}, None)
    assert indexed.metadata == case["metadata"]
    assert (indexed.title, indexed.tags) == (case["title"], case["tags"])
    assert "".join(indexed.chunks) == case["body"]


def test_empty_tags_of_the_request_apply() -> None:
    content = b"---\ntitle: Orchard\ntags: [fruit]\n---\nThe walnut stands."
    [indexed] = prepare({"a.md": Document(content, b'{"title": "", "tags": []}')}, None)
    assert (indexed.title, indexed.tags) == ("", [])


@pytest.mark.parametrize(
    "content",
    [
        "---\n" + "k: v\n" * 400_000,
        "---\nk: [" + "'a, " * 400_000 + "]\n",
        "---\nk: [" + '\'a", "' * 400_000 + "]\n",
        "---\nk: ['" + " " * 800_000 + "' x]\n",
    ],
    ids=["lines", "quotes", "both quotes", "blanks"],
)
def test_front_matter_is_parsed_in_linear_time(content: str) -> None:
    """Eight megabytes in one request took minutes while each line copied the rest."""
    assert parse(content).text == content
    assert parse(f"{content}---\nbody").text == "body"
