import pytest

from memoryd.brain.source import prepare
from memoryd.files.tree import Document
from memoryd.problem import Problem
from memoryd.wire import exact_json
from memoryd.wire.base64 import decode_base64


@pytest.mark.parametrize(
    "number",
    ["9007199254740993", "0.10000000000000001", "5.0", "42", "-0.0", "1E+308", "1e-400", "1" * 309],
)
def test_numbers_are_kept_as_they_are_written(number: str) -> None:
    text = f'{{"a":[{number}],"b":"c"}}'
    assert exact_json.dumps(exact_json.loads(text)) == text


def test_short_numbers_take_no_more_memory_than_usual() -> None:
    """Eight million numbers of one digit, in a body of 16 MiB, took a gigabyte."""
    assert exact_json.loads("[1, -0, 0.5]") == [1, 0, 0.5]


def test_numbers_beyond_float64_are_found_at_any_depth() -> None:
    assert not exact_json.are_finite(exact_json.loads('{"a":[{"b":1e999}]}'))
    assert not exact_json.are_finite(exact_json.loads("9" * 5_000))
    assert exact_json.are_finite(exact_json.loads('[1e308,"1e999",1e-99999999999999999999,null]'))


def test_a_sidecar_with_a_number_beyond_float64_is_ignored() -> None:
    """Anybody may have written the file, and a response could not be read."""
    document = Document(b"heron", b'{"title": "T", "metadata": {"n": 1e999}}')
    [indexed] = prepare({"a.md": document}, None)
    assert (indexed.title, indexed.metadata) == (None, {})


@pytest.mark.parametrize(
    "content", ["YR==", "YWJ=", "YWI==", "=", "====", "YQ==\n", "\uff39\uff31=="]
)
def test_only_canonical_base64_is_decoded(content: str) -> None:
    with pytest.raises(Problem):
        decode_base64(content, "contentBase64")
