import pytest

from memoryd.frontmatter import Document, parse


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("plain", Document("plain")),
        ("---\nkey: value\n---\nbody", Document("body", {"key": "value"})),
        ("---\r\nkey: value\r\n---\r\nbody", Document("body", {"key": "value"})),
        ("---\nlist: [a, 'b c']\nn: 3\n---\n", Document("", {"list": ["a", "b c"], "n": "3"})),
        ("---\nempty: []\nblank:\n---\nx", Document("x", {"empty": [], "blank": ""})),
        ("---\n---\nbody", Document("body")),
        ('---\nq: "a: b"\n---\nx', Document("x", {"q": "a: b"})),
    ],
)
def test_front_matter_is_split_off(content: str, expected: Document) -> None:
    assert parse(content) == expected


@pytest.mark.parametrize(
    "content",
    [
        "---",
        "---\nkey: value\nbody",
        "---\nno colon\n---\nbody",
        "---\n  nested: x\n---\nbody",
        "text\n---\nkey: value\n---\n",
        "----\nkey: value\n----\n",
    ],
)
def test_malformed_front_matter_is_ordinary_text(content: str) -> None:
    assert parse(content) == Document(content)


def test_unterminated_front_matter_is_parsed_in_linear_time() -> None:
    """Eight megabytes in one request took minutes while each line copied the rest."""
    content = "---\n" + "k: v\n" * 400_000
    assert parse(content) == Document(content)
