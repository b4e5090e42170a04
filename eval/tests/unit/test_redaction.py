import io
from collections.abc import Iterator

import pytest

from memconform import redaction


@pytest.fixture(autouse=True)
def _nothing_hidden() -> Iterator[None]:
    redaction.forget()
    yield
    redaction.forget()


def test_a_secret_is_masked_in_text_and_bytes() -> None:
    redaction.hide("s3cret-value")
    assert redaction.redact("a s3cret-value, twice: s3cret-value") == "a (hidden), twice: (hidden)"
    assert redaction.redact_bytes(b"\xff s3cret-value") == b"\xff (hidden)"


def test_a_secret_is_masked_as_it_stands_in_json() -> None:
    redaction.hide('a"b\u00e9c-long')
    assert redaction.redact('{"k": "a\\"b\u00e9c-long"}') == '{"k": "(hidden)"}'
    assert redaction.redact('{"k": "a\\"b\\u00e9c-long"}') == '{"k": "(hidden)"}'


def test_the_longer_of_two_secrets_goes_first() -> None:
    redaction.hide("a-token-")
    redaction.hide("a-token-and-more")
    assert redaction.redact("a-token-and-more a-token-") == "(hidden) (hidden)"


def test_without_secrets_and_for_tiny_ones_nothing_changes() -> None:
    for ordinary in ("true", "null", "stage", "2026"):
        redaction.hide(ordinary)
        assert redaction.redact(ordinary) == ordinary


def test_only_strings_are_masked_and_json_stays_json() -> None:
    """Masking finished JSON once left results that could not be read."""
    redaction.hide("schema_version")
    redaction.hide("12345678")
    value = {"schema_version": ["a 12345678", 12345678, None, {"x": "schema_version"}]}
    assert redaction.redact_values(value) == {
        "schema_version": ["a (hidden)", 12345678, None, {"x": "(hidden)"}]
    }


def test_variables_are_hidden_by_their_names() -> None:
    redaction.hide_variables({"OPENAI_API_KEY": "sk-canary", "JB_LLM_MODEL": "tiny-model"})
    assert redaction.redact("sk-canary tiny-model") == "(hidden) tiny-model"


def test_a_secret_across_the_end_of_a_chunk_is_masked() -> None:
    redaction.hide("abcabcabd")
    redaction.hide("a-longer-secret-than-a-chunk")
    text = b"xabcabcabcabd a-longer-secret-than-a-chunk, abcabcab" * 3
    for size in range(1, len(text) + 2):
        assert b"".join(redaction.redact_stream(io.BytesIO(text), size)) == redaction.redact_bytes(
            text
        )


def test_a_stream_without_secrets_passes_unchanged() -> None:
    assert b"".join(redaction.redact_stream(io.BytesIO(b"ordinary"), 3)) == b"ordinary"
