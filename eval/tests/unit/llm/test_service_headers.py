"""Headers for model services, from the flag and from variables."""

import pytest

from memconform import redaction
from memconform.cli.values import request_headers
from memconform.errors import UsageError
from memconform.llm.names import ModelName
from memconform.llm.settings import (
    endpoint,
    model_environment,
    models_address,
)
from tests.unit.model_services import KEY, OPENAI_NAME, refusal


def test_headers_of_the_flag_and_of_variables() -> None:
    env = KEY | {
        "OPENAI_CUSTOM_HEADERS": "X-Team: blue\nX-Route: a",
        "MEMCONFORM_JUDGE_HEADERS": "x-team: green",
    }
    where = endpoint(OPENAI_NAME, model_environment(("Authorization: Bearer canary-0123",), env))
    assert dict(where.headers) == {
        "x-team": "green", "X-Route": "a", "Authorization": "Bearer canary-0123",
    }  # fmt: skip
    assert redaction.redact("canary-0123") == redaction.MASK
    assert "OPENAI_CUSTOM_HEADERS" not in endpoint(ModelName("ollama", "m"), env).headers
    for text in ("no header", "Bad Name: x", ": x", "X: schlüssel"):
        with pytest.raises(UsageError, match="--judge-header") as raised:
            model_environment((text,), {})
        assert raised.value.code == "bad_service_header"
        error = refusal(OPENAI_NAME, KEY | {"OPENAI_CUSTOM_HEADERS": text})
        assert "OPENAI_CUSTOM_HEADERS" in error.message


@pytest.mark.parametrize(
    ("name", "header", "version"),
    [
        (OPENAI_NAME, "AUTHORIZATION", ""),
        (ModelName("anthropic", "claude-haiku-4-5"), "X-API-Key", ""),
        (ModelName("azure", "m"), "Api-Key", "2024-10-21"),
    ],
)
def test_a_header_that_is_given_replaces_the_key_of_a_list_of_models_in_any_case(
    name: ModelName, header: str, version: str
) -> None:
    """`doctor` sent two authorizations, and a gateway chose."""
    env = {f"{name.provider.upper()}_API_KEY": "key-0123456789", "OPENAI_API_VERSION": version}
    env |= {"AZURE_OPENAI_API_KEY": "key-0123456789", "AZURE_OPENAI_ENDPOINT": "https://r.test"}
    where = endpoint(name, model_environment((f"{header}: canary-0123",), env))
    headers = models_address(where)[1]
    assert headers[header.lower()] == "canary-0123"
    assert len({key.lower() for key in headers}) == len(headers)
    assert "key-0123456789" not in str(headers)


def test_a_header_that_routes_is_part_of_the_caches_address_and_a_credential_is_not() -> None:
    def stable(*headers: str) -> str | None:
        return endpoint(OPENAI_NAME, model_environment(headers, KEY)).stable_address

    assert stable() is None
    assert stable("X-Api-Key: one") is None
    assert stable("X-Route: a") != stable("X-Route: b")
    assert stable("X-Route: a", "Authorization: Bearer a") == stable("x-route: a")


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "content-length", "Transfer-Encoding", "TE", "Trailer", "Content-Encoding"),
        *("Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Expect"),
    ],
)
def test_a_header_of_http_itself_is_refused_with_the_reason(name: str) -> None:
    """With a Content-Length of the user's, services waited for bytes that nobody sends."""
    text = f"{name}: 5"
    with pytest.raises(UsageError, match=f"--judge-header {name} cannot be given: HTTP") as judge:
        model_environment((text,), {})
    with pytest.raises(UsageError, match=f"--header {name} cannot be given: HTTP") as daemon:
        request_headers((text,))
    assert (judge.value.code, daemon.value.code) == ("bad_service_header", "bad_header")
    assert name in daemon.value.hint
    variable = refusal(OPENAI_NAME, KEY | {"MEMCONFORM_JUDGE_HEADERS": text})
    assert f"MEMCONFORM_JUDGE_HEADERS {name} cannot be given" in variable.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (":v", "no name before the first colon"),
        (":authority: canary-0123", "no name before the first colon"),
        ("canary-0123", "no colon"),
        ("canary 0123: x", "characters before its colon"),
        ("X: é", "printable ASCII"),
        ("X: a\nb", "printable ASCII"),
    ],
)
def test_what_is_no_header_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as judge:
        model_environment((text,), {})
    with pytest.raises(UsageError, match=reason) as daemon:
        request_headers((text,))
    for error in (judge.value, daemon.value):
        assert "canary" not in error.message + error.hint
