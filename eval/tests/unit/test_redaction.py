from collections.abc import Iterator

import pytest

from memconform import redaction


@pytest.fixture(autouse=True)
def _nothing_hidden() -> Iterator[None]:
    redaction.forget()
    yield
    redaction.forget()


def test_a_secret_is_masked_in_text_and_bytes() -> None:
    redaction.hide("s3cret")
    assert redaction.redact("a s3cret, twice: s3cret") == "a (hidden), twice: (hidden)"
    assert redaction.redact_bytes(b"\xff s3cret") == b"\xff (hidden)"


def test_a_secret_is_masked_as_it_stands_in_json() -> None:
    redaction.hide('a"b\u00e9c')
    assert redaction.redact('{"k": "a\\"b\u00e9c"}') == '{"k": "(hidden)"}'
    assert redaction.redact('{"k": "a\\"b\\u00e9c"}') == '{"k": "(hidden)"}'


def test_the_longer_of_two_secrets_goes_first() -> None:
    redaction.hide("token")
    redaction.hide("token-and-more")
    assert redaction.redact("token-and-more token") == "(hidden) (hidden)"


def test_without_secrets_and_for_tiny_ones_nothing_changes() -> None:
    redaction.hide("abc")
    assert redaction.redact("abc") == "abc"


def test_variables_are_hidden_by_their_names() -> None:
    redaction.hide_variables({"OPENAI_API_KEY": "sk-canary", "JB_LLM_MODEL": "tiny-model"})
    assert redaction.redact("sk-canary tiny-model") == "(hidden) tiny-model"
