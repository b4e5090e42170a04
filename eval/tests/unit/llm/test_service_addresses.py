"""Addresses of model services: what a variable holds becomes an address, or an error that helps."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform import redaction
from memconform.errors import UsageError
from memconform.llm.names import ModelName
from memconform.llm.settings import (
    address,
    endpoint,
    model_environment,
    models_address,
    require_daemon_service,
)
from memconform.redaction import masked_address
from tests.unit.model_services import ANY_HOST, KEY, OPENAI_NAME, refusal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", None),
        (" \t\n", None),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("HTTP://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        (" https://models.example/v1\r\n", "https://models.example/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_empty_address_is_the_vendors_own(value: str, expected: str | None) -> None:
    for provider, variable in (("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")):
        name = ModelName(provider, "m")
        env = {variable: value, "OPENAI_API_KEY": "key", "ANTHROPIC_API_KEY": "key"}
        where = endpoint(name, env)
        assert where.base_url == expected
        # The client is told an address in any case: of an empty one it would make "".
        assert where.url.startswith("http")


@pytest.mark.parametrize(
    "value",
    [
        "localhost:8000/v1",
        "models.example",
        "ftp://models.example/v1",
        "ws://models.example",
        "http://",
        "http:///v1",
        "http://:8000",
        "http://h:99999",
        "http://h:0",
        "http://h:port",
        "http://[::1/v1",
        "http://a b/v1",
        '"http://127.0.0.1:8000/v1"',
        "'http://127.0.0.1:8000/v1'",
        "http://h/v1?api-version=1",
        "http://h/v1#x",
        "http://300.1.1.1/v1",
        "http://h..example/v1",
        "http://h\n/v1",
        "//h/v1",
    ],
)
def test_an_invalid_address_names_variable_value_and_remedy(value: str) -> None:
    error = refusal(OPENAI_NAME, KEY | {"OPENAI_BASE_URL": value})
    assert error.code == "bad_service_address"
    assert "OPENAI_BASE_URL" in error.message
    assert repr(masked_address(value)) in error.message
    assert "export OPENAI_BASE_URL=" in error.hint


def test_a_password_in_an_address_is_not_shown() -> None:
    for value in ("http://me:canary-9@h:99999", "me:canary-9@h:1", "ftp://me:canary-9@h"):
        error = refusal(OPENAI_NAME, KEY | {"OPENAI_BASE_URL": value})
        assert "canary-9" not in error.message + error.hint
    for value in ("http://me:canary-9@h:99999", "me:canary-9@h:x", "socks9://me:canary-9@h"):
        error = refusal(OPENAI_NAME, KEY | {"HTTPS_PROXY": value})
        assert error.code == "bad_proxy"
        assert "HTTPS_PROXY" in error.message
        assert "canary-9" not in error.message + error.hint


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", "http://127.0.0.1:11434"),
        (" ", "http://127.0.0.1:11434"),
        ("10.0.0.1", "http://10.0.0.1:11434"),
        ("10.0.0.1:8080", "http://10.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        (ANY_HOST, "http://127.0.0.1:11434"),
        (f"{ANY_HOST}:80", "http://127.0.0.1:80"),
        ("gpu.example", "http://gpu.example:11434"),
        ("gpu.example:", "http://gpu.example:11434"),
        ("http://gpu.example", "http://gpu.example"),
        ("https://gpu.example", "https://gpu.example"),
        ("HTTPS://gpu.example:11434/", "https://gpu.example:11434"),
        ("https://gpu.example/ollama/", "https://gpu.example/ollama"),
        ("gpu.example:1/ollama", "http://gpu.example:1/ollama"),
        ("gpu.example/ollama", "http://gpu.example:11434/ollama"),
        ("::1", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("::", "http://[::1]:11434"),
        ("[::]:8080", "http://[::1]:8080"),
        ("http://[::1]", "http://[::1]"),
        ('"10.0.0.1:8080"', "http://10.0.0.1:8080"),
        ("'http://10.0.0.1:8080/'", "http://10.0.0.1:8080"),
        (" 10.0.0.1 ", "http://10.0.0.1:11434"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"),
    ],
)
def test_ollama_host_in_every_form_that_its_own_client_takes(host: str, expected: str) -> None:
    assert address(ModelName("ollama", "m"), {"OLLAMA_HOST": host}) == f"{expected}/v1"


@pytest.mark.parametrize("host", ["ftp://h", "h:99999", "h:x", "[::1", "a b", "h:1?x=y"])
def test_an_invalid_ollama_host_is_named(host: str) -> None:
    error = refusal(ModelName("ollama", "m"), {"OLLAMA_HOST": host})
    assert error.code == "bad_service_address"
    assert "OLLAMA_HOST" in error.message
    assert repr(masked_address(host)) in error.message


def test_an_azure_deployment_with_and_without_a_version() -> None:
    name = ModelName.parse("azure:my deployment", {})
    env = {"AZURE_OPENAI_API_KEY": "key-0123456789"}
    assert refusal(name, env).code == "no_service_address"
    for resource in ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/"):
        env["AZURE_OPENAI_ENDPOINT"] = resource
        assert endpoint(name, env).url == "https://r.openai.azure.com/openai/v1"
        assert endpoint(name, env | {"OPENAI_API_VERSION": "preview"}).api_version is None
        where = endpoint(name, env | {"OPENAI_API_VERSION": "2024-10-21"})
        assert where.url == "https://r.openai.azure.com/openai/deployments/my%20deployment"
        assert where.api_version == "2024-10-21"
        # The answers of two versions are not exchanged.
        assert where.stable_address == f"{where.url} 2024-10-21"
        assert models_address(where)[0] == (
            "https://r.openai.azure.com/openai/models?api-version=2024-10-21"
        )
    bad = refusal(name, env | {"OPENAI_API_VERSION": "2024 10"})
    assert "OPENAI_API_VERSION" in bad.message


@pytest.mark.parametrize("headers", [(), ("X-Route: a",)])
def test_the_users_of_an_address_are_no_part_of_what_caches_know_it_by(
    headers: tuple[str, ...],
) -> None:
    def stable(address: str) -> str | None:
        env = model_environment(headers, KEY | {"OPENAI_BASE_URL": address})
        return endpoint(OPENAI_NAME, env).stable_address

    known = stable("https://gateway.test:8443/a@b/v1")
    assert known is not None
    assert known.startswith("https://gateway.test:8443/a@b/v1")
    assert stable("https://user:canary-0123@gateway.test:8443/a@b/v1") == known


def test_the_service_of_daemons_needs_an_address_that_is_one() -> None:
    """A daemon started with it answered every question with an error."""
    env = {"JB_LLM_PROVIDER": "openai", "JB_LLM_MODEL": "m", "OPENAI_BASE_URL": "localhost:8000/v1"}
    with pytest.raises(UsageError, match="OPENAI_BASE_URL"):
        require_daemon_service(env)
    for changed in (
        {"OPENAI_BASE_URL": ""},
        {"OPENAI_BASE_URL": "http://localhost:8000/v1"},
        {"JB_LLM_PROVIDER": "fake"},
        {"JB_LLM_PROVIDER": "unknown"},
        {"JB_LLM_MODEL": ""},
    ):
        require_daemon_service(env | changed)


_NAMES = {
    "OPENAI_BASE_URL": OPENAI_NAME,
    "ANTHROPIC_BASE_URL": ModelName("anthropic", "m"),
    "AZURE_OPENAI_ENDPOINT": ModelName("azure", "m"),
    "OLLAMA_HOST": ModelName("ollama", "m"),
}


def _suggested(variable: str, value: str) -> str | None:
    """The address that the refusal of a value suggests; empty for none, None if it is accepted."""
    try:
        address(_NAMES[variable], {variable: value})
    except UsageError as error:
        hint = error.hint
    else:
        return None
    word = shlex.split(hint.removesuffix(", or unset it"))[1]
    suggestion = word.removeprefix(f"{variable}=")
    return "" if suggestion == "http://HOST:PORT" else suggestion


@pytest.mark.parametrize(
    ("variable", "value", "suggestion"),
    [
        ("ANTHROPIC_BASE_URL", "http:127.0.0.1:9", "http://127.0.0.1:9"),
        ("ANTHROPIC_BASE_URL", "HTTPS:/models.example", "https://models.example"),
        ("OPENAI_BASE_URL", "http//models.example/v1", "http://models.example/v1"),
        ("OPENAI_BASE_URL", "http:80/v1", "http://http:80/v1"),
        ("OPENAI_BASE_URL", "localhost:8000/v1", "http://localhost:8000/v1"),
        ("OPENAI_BASE_URL", "//h/v1", "http://h/v1"),
        ("OPENAI_BASE_URL", '"http://[::1]:80/v1"', "http://[::1]:80/v1"),
        ("OPENAI_BASE_URL", "h:8000/v1?key=x", "http://h:8000/v1"),
        ("OPENAI_BASE_URL", "https://h/v1#x?y", "https://h/v1"),
        ("AZURE_OPENAI_ENDPOINT", "r.openai.azure.com", "http://r.openai.azure.com"),
        ("OLLAMA_HOST", "http:/h", "http://h"),
        ("OLLAMA_HOST", "h#x", "h"),
        ("OLLAMA_HOST", "h:1?x=y", "h:1"),
        ("OLLAMA_HOST", "https://h/ollama#x", "https://h/ollama"),
        ("OLLAMA_HOST", "http:127.0.0.1:9", "http://127.0.0.1:9"),
        ("OPENAI_BASE_URL", "h:port", ""),
        ("OPENAI_BASE_URL", "ftp://h", ""),
        ("OPENAI_BASE_URL", "/v1", ""),
        ("OPENAI_BASE_URL", "me:canary-9@h", ""),
        ("OLLAMA_HOST", "h:99999#x", ""),
        ("OLLAMA_HOST", "http::1", ""),
        ("OLLAMA_HOST", "http:/::1", "http://::1"),
    ],
)
def test_the_address_that_was_meant_is_suggested(
    variable: str, value: str, suggestion: str
) -> None:
    assert _suggested(variable, value) == suggestion


_PIECES = (
    st.sampled_from(("", "http:", "https:/", "HTTP//", "http://", "//", "http", "ftp://")),
    st.sampled_from(("", "", "me@", "me:canary-9@")),
    st.sampled_from(("h", "models.example", "127.0.0.1", "[::1]", "::1", "a$b", "300.1.1.1")),
    st.sampled_from(("", ":", ":9", ":99999", ":x")),
    st.sampled_from(("", "/", "/v1", "/a(b)/v1")),
    st.sampled_from(("", "?", "?x=y", "#x", "#x?y", "?x#y")),
)


@given(
    variable=st.sampled_from(sorted(_NAMES)),
    quote=st.sampled_from(("", '"', "'", " ")),
    pieces=st.tuples(*_PIECES),
)
def test_an_address_that_is_suggested_is_accepted_and_has_the_host(
    variable: str, quote: str, pieces: tuple[str, ...]
) -> None:
    """For `http:127.0.0.1:9`, it was `http://http:127.0.0.1:9`."""
    suggestion = _suggested(variable, f"{quote}{''.join(pieces)}{quote}")
    redaction.forget()
    if suggestion:
        assert pieces[2] in suggestion
        assert "canary" not in suggestion
        assert redaction.MASK not in suggestion
        assert _suggested(variable, suggestion) is None
