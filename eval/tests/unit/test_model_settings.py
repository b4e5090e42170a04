"""Settings of model services: what a shell holds becomes settings, or an error that names it."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform import redaction
from memconform.datasets.model import Question
from memconform.errors import UsageError
from memconform.llm.names import PROVIDERS, ModelName
from memconform.llm.prices import Prices
from memconform.llm.settings import (
    address,
    endpoint,
    is_configured,
    model_environment,
    models_address,
    require_daemon_service,
    service_settings,
)
from memconform.network import certificates, is_loopback, proxy_for
from memconform.scoring.judge import forecast
from memconform.scoring.judge.opening import judge_names

_OPENAI = ModelName("openai", "m")
_KEY = {"OPENAI_API_KEY": "sk-0123456789"}
_PROXY = "http://proxy.example:3128"
_ANY_HOST = "0.0.0.0"  # noqa: S104 - not bound to
_FAR = "https://models.example/v1"


@pytest.fixture(autouse=True)
def forget() -> None:
    redaction.forget()


def _refusal(name: ModelName, env: dict[str, str]) -> UsageError:
    with pytest.raises(UsageError) as raised:
        endpoint(name, env)
    return raised.value


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
    error = _refusal(_OPENAI, _KEY | {"OPENAI_BASE_URL": value})
    assert error.code == "bad_service_address"
    assert "OPENAI_BASE_URL" in error.message
    assert repr(value) in error.message
    assert "export OPENAI_BASE_URL=" in error.hint


def test_a_password_in_an_address_is_not_shown() -> None:
    for value in ("http://me:canary-9@h:99999", "me:canary-9@h:1", "ftp://me:canary-9@h"):
        error = _refusal(_OPENAI, _KEY | {"OPENAI_BASE_URL": value})
        assert "canary-9" not in error.message + error.hint
    for value in ("http://me:canary-9@h:99999", "me:canary-9@h:x", "socks9://me:canary-9@h"):
        error = _refusal(_OPENAI, _KEY | {"HTTPS_PROXY": value})
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
        (_ANY_HOST, "http://127.0.0.1:11434"),
        (f"{_ANY_HOST}:80", "http://127.0.0.1:80"),
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
    error = _refusal(ModelName("ollama", "m"), {"OLLAMA_HOST": host})
    assert error.code == "bad_service_address"
    assert "OLLAMA_HOST" in error.message
    assert repr(host) in error.message


@pytest.mark.parametrize("key", ["sk a", "sk\nb", "schlüssel", '"sk-0123456789"', "sk\tc", "'k'"])
def test_a_key_with_what_no_key_has_is_named_and_not_shown(key: str) -> None:
    error = _refusal(_OPENAI, {"OPENAI_API_KEY": key})
    assert error.code == "bad_api_key"
    assert "OPENAI_API_KEY" in error.message
    assert key not in error.message


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_an_empty_key_is_no_key(key: str) -> None:
    assert _refusal(_OPENAI, {"OPENAI_API_KEY": key}).code == "no_api_key"
    assert not is_configured("openai", {"OPENAI_API_KEY": key})


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST")),
        *((host, True) for host in ("ip6-localhost", "localhost.localdomain", "IP6-loopback")),
        *((host, True) for host in ("a.localhost", "localhost.", "127.1", "0x7f.1", _ANY_HOST)),
        *((host, True) for host in ("2130706433", "::ffff:127.0.0.1", "::")),
        *((host, False) for host in ("128.0.0.1", "10.0.0.1", "localhost.example", "fe80::1")),
        *((host, False) for host in ("127.example", "1e100.net", "notlocalhost")),
    ],
)
def test_loopback_in_every_form(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected
    place = f"[{host}]" if ":" in host else host
    proxy = proxy_for(f"http://{place}:1/v1", {"HTTP_PROXY": _PROXY, "ALL_PROXY": _PROXY})
    assert (proxy is None) is expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": _PROXY}, "HTTPS_PROXY"),
        ({"https_proxy": _PROXY}, "https_proxy"),
        ({"HTTPS_PROXY": "http://other", "https_proxy": _PROXY}, "https_proxy"),
        ({"HTTPS_PROXY": _PROXY, "https_proxy": " "}, "HTTPS_PROXY"),
        ({"HTTP_PROXY": _PROXY}, None),
        ({"ALL_PROXY": _PROXY}, "ALL_PROXY"),
        ({"all_proxy": _PROXY, "HTTPS_PROXY": ""}, "all_proxy"),
        ({"HTTPS_PROXY": "", "ALL_PROXY": "\t"}, None),
    ],
)
def test_the_proxy_of_a_scheme(env: dict[str, str], expected: str | None) -> None:
    proxy = proxy_for(_FAR, env)
    assert (proxy and proxy.variable) == expected
    assert proxy is None or proxy.url == _PROXY


@pytest.mark.parametrize(
    ("entry", "covered"),
    [
        *((entry, True) for entry in ("*", "models.example", ".models.example", "MODELS.example")),
        *((entry, True) for entry in ("example", ".example", "*.example", "models.example:443")),
        *(
            (entry, True)
            for entry in ("a.b, models.example", "a.b models.example", "models.example.")
        ),
        *((entry, True) for entry in ("https://models.example", '"models.example"')),
        *(
            (entry, False)
            for entry in ("", ",", "odels.example", "models.example:80", "10.0.0.0/8")
        ),
        *(
            (entry, False)
            for entry in ("http://models.example", "models.example.org", "[", "/", ":")
        ),
    ],
)
def test_no_proxy_in_every_form(entry: str, *, covered: bool) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        proxy = proxy_for(_FAR, {"HTTPS_PROXY": _PROXY, variable: entry})
        assert (proxy is None) is covered


@pytest.mark.parametrize(
    ("host", "entry", "covered"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:443", True),
        ("10.1.2.3", "10.1.2.3:80", False),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.0.0.0/99", False),
        ("[fd00::1]", "fd00::/8", True),
        ("[fd00::1]", "[fd00::1]", True),
        ("[fd00::1]", "fd00:0::1", True),
        ("[fd00::1]", "[fd00::1]:443", True),
        ("[fd00::1]", "fe80::/10", False),
    ],
)
def test_no_proxy_covers_addresses_and_networks(host: str, entry: str, *, covered: bool) -> None:
    env = {"HTTPS_PROXY": _PROXY, "NO_PROXY": entry}
    assert (proxy_for(f"https://{host}/v1", env) is None) is covered


@pytest.mark.parametrize(
    "value", ["http://", "http://h:99999", "gopher://h", "http://a b", "http://h\x00", "h:x"]
)
def test_an_invalid_proxy_is_named_only_where_it_would_be_used(value: str) -> None:
    error = _refusal(_OPENAI, _KEY | {"HTTPS_PROXY": value})
    assert error.code == "bad_proxy"
    assert "HTTPS_PROXY" in error.message
    assert "NO_PROXY=api.openai.com" in error.hint
    local = {"OPENAI_BASE_URL": "https://127.0.0.1:1/v1", "HTTPS_PROXY": value}
    assert endpoint(_OPENAI, _KEY | local).proxy is None
    assert endpoint(_OPENAI, _KEY | {"HTTPS_PROXY": value, "NO_PROXY": "*"}).proxy is None


def test_a_proxy_without_a_scheme_is_one_of_http() -> None:
    proxy = proxy_for(_FAR, {"HTTPS_PROXY": "proxy.example:3128"})
    assert proxy is not None
    assert proxy.url == _PROXY


def test_socks_without_its_package_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """ImportError, exit 70, even for the judge on loopback."""
    env = _KEY | {"ALL_PROXY": "socks5://127.0.0.1:1080"}
    monkeypatch.setattr("memconform.network.find_spec", lambda _: None)
    error = _refusal(_OPENAI, env)
    assert error.code == "no_socks"
    assert "ALL_PROXY" in error.message
    assert "pip install socksio" in error.hint
    assert endpoint(ModelName("ollama", "m"), env).proxy is None
    monkeypatch.setattr("memconform.network.find_spec", lambda _: object())
    assert endpoint(_OPENAI, env).proxy is not None


def test_certificates_that_are_gone_are_named_only_where_tls_is_spoken(tmp_path: Path) -> None:
    """SSL_CERT_FILE of a conda that is gone was a FileNotFoundError that named neither."""
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "text.pem").write_text("no certificate")
    for variable, path, fault in (
        ("SSL_CERT_FILE", tmp_path / "gone.pem", "does not exist"),
        ("SSL_CERT_FILE", tmp_path / "empty.pem", "has no certificate"),
        ("SSL_CERT_FILE", tmp_path / "text.pem", "has no certificate"),
        ("SSL_CERT_FILE", tmp_path, "cannot be read"),
        ("SSL_CERT_FILE", Path("a\0b"), "cannot be read"),
        ("SSL_CERT_DIR", tmp_path / "gone", "does not exist"),
        ("SSL_CERT_DIR", tmp_path, "has no certificate"),
        ("SSL_CERT_DIR", tmp_path / "text.pem", "cannot be read"),
    ):
        env = _KEY | {variable: str(path)}
        error = _refusal(_OPENAI, env)
        assert error.code == "bad_certificates"
        assert variable in error.message
        assert str(path) in error.message
        assert fault in error.message
        plain = env | {"OPENAI_BASE_URL": "http://models.example/v1"}
        assert endpoint(_OPENAI, plain).certificates is None
    assert certificates({"SSL_CERT_FILE": "", "SSL_CERT_DIR": " "}, _FAR) is None


def test_certificates_that_exist_are_used() -> None:
    bundle = pytest.importorskip("certifi").where()
    where = endpoint(_OPENAI, _KEY | {"SSL_CERT_FILE": bundle})
    assert where.certificates is not None
    assert where.certificates.context().cert_store_stats()["x509_ca"] > 0


def test_an_azure_deployment_with_and_without_a_version() -> None:
    name = ModelName.parse("azure:my deployment", {})
    env = {"AZURE_OPENAI_API_KEY": "key-0123456789"}
    assert _refusal(name, env).code == "no_service_address"
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
    bad = _refusal(name, env | {"OPENAI_API_VERSION": "2024 10"})
    assert "OPENAI_API_VERSION" in bad.message


def test_headers_of_the_flag_and_of_variables() -> None:
    env = _KEY | {
        "OPENAI_CUSTOM_HEADERS": "X-Team: blue\nX-Route: a",
        "MEMCONFORM_JUDGE_HEADERS": "x-team: green",
    }
    where = endpoint(_OPENAI, model_environment(("Authorization: Bearer canary-0123",), env))
    assert dict(where.headers) == {
        "x-team": "green", "X-Route": "a", "Authorization": "Bearer canary-0123",
    }  # fmt: skip
    assert redaction.redact("canary-0123") == redaction.MASK
    assert "OPENAI_CUSTOM_HEADERS" not in endpoint(ModelName("ollama", "m"), env).headers
    for text in ("no header", "Bad Name: x", ": x", "X: schlüssel"):
        with pytest.raises(UsageError, match="--judge-header") as raised:
            model_environment((text,), {})
        assert raised.value.code == "bad_service_header"
        error = _refusal(_OPENAI, _KEY | {"OPENAI_CUSTOM_HEADERS": text})
        assert "OPENAI_CUSTOM_HEADERS" in error.message


@pytest.mark.parametrize(
    ("name", "header", "version"),
    [
        (_OPENAI, "AUTHORIZATION", ""),
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


@pytest.mark.parametrize("headers", [(), ("X-Route: a",)])
def test_the_users_of_an_address_are_no_part_of_what_caches_know_it_by(
    headers: tuple[str, ...],
) -> None:
    def stable(address: str) -> str | None:
        env = model_environment(headers, _KEY | {"OPENAI_BASE_URL": address})
        return endpoint(_OPENAI, env).stable_address

    known = stable("https://gateway.test:8443/a@b/v1")
    assert known is not None
    assert known.startswith("https://gateway.test:8443/a@b/v1")
    assert stable("https://user:canary-0123@gateway.test:8443/a@b/v1") == known


def test_a_header_that_routes_is_part_of_the_caches_address_and_a_credential_is_not() -> None:
    def stable(*headers: str) -> str | None:
        return endpoint(_OPENAI, model_environment(headers, _KEY)).stable_address

    assert stable() is None
    assert stable("X-Api-Key: one") is None
    assert stable("X-Route: a") != stable("X-Route: b")
    assert stable("X-Route: a", "Authorization: Bearer a") == stable("x-route: a")


def test_what_results_say_of_a_service_has_no_secret() -> None:
    env = {
        "OPENAI_API_KEY": "sk-canary",
        "OPENAI_BASE_URL": "https://me:canary@models.example/v1",
        "HTTPS_PROXY": "http://me:canary@proxy.example:3128",
    }
    where = endpoint(_OPENAI, model_environment(("X-Team: canary",), env))
    service = service_settings("openai", where)
    assert "canary" not in service.model_dump_json() + service.line() + repr(where) + str(where)
    assert service.headers == ["X-Team"]
    assert service.key_variable == "OPENAI_API_KEY"
    assert "(HTTPS_PROXY)" in service.proxy
    assert "OPENAI_API_KEY" in service.line()


_VARIABLES = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_OPENAI_API_KEY"),
    *("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "AZURE_OPENAI_ENDPOINT", "OLLAMA_HOST"),
    *("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_VERSION", "MEMCONFORM_JUDGE_HEADERS"),
    *("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS", "HTTP_PROXY", "https_proxy"),
    *("ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_PIECES = st.sampled_from(
    (
        *("", " ", "\n", '"', "'", "\0", "\x7f", "é", "\ud800", "*", ",", ".", "/", "//", ":", "@"),
        *("http", "https", "socks5", "ftp", "://", "[", "]", "::1", "127.0.0.1", _ANY_HOST, "h"),
        *(
            "localhost",
            "models.example",
            "8080",
            "99999",
            "0",
            "-1",
            "?",
            "#",
            "%",
            "%zz",
            "\\",
            "v1",
        ),
        *(
            "10.0.0.0",
            "/8",
            "/99",
            "user",
            "sk-0123456789",
            "X-Team: a",
            "xn--",
            "a" * 70,
            "\uff11",
        ),
    )
)
_VALUES = st.lists(_PIECES, max_size=6).map("".join)


@given(
    env=st.dictionaries(st.sampled_from(_VARIABLES), _VALUES),
    provider=st.sampled_from([provider for provider in PROVIDERS if provider != "fake"]),
)
def test_every_environment_ends_in_settings_or_in_an_error_that_names_a_variable(
    env: dict[str, str], provider: str
) -> None:
    refusal = None
    try:
        where = endpoint(ModelName(provider, "m"), env)
        assert where.url.startswith(("http://", "https://"))
        assert where.url == where.url.strip()
        assert service_settings(provider, where).line()
    except UsageError as error:
        refusal = error
    redaction.forget()
    if refusal is not None:
        assert any(re.search(rf"\b{name}\b", refusal.message) for name in _VARIABLES)
        assert refusal.hint


def test_the_cases_from_outside_in_their_own_words() -> None:
    """One row a setting under which a command with a judge once broke."""
    rows = tomllib.loads(
        """
        [[row]]
        set = { HTTP_PROXY = "http://127.0.0.1:23128", HTTPS_PROXY = "http://127.0.0.1:23128" }
        [[row]]
        set = { ALL_PROXY = "socks5://127.0.0.1:1080" }
        [[row]]
        set = { SSL_CERT_FILE = "/nonexistent/cacert.pem" }
        """
    )["row"]
    for row in rows:
        where = endpoint(ModelName("ollama", "m"), row["set"])
        assert (where.proxy, where.certificates) == (None, None)


def test_a_judge_of_the_environment_that_nobody_knows_is_named_with_its_variable() -> None:
    for value in ("", " \n"):
        assert judge_names((), {"JB_EVAL_JUDGE_MODEL": value, **_KEY})[0].provider == "openai"
    with pytest.raises(UsageError, match=r"JB_EVAL_JUDGE_MODEL: .*'house-model'"):
        judge_names((), {"JB_EVAL_JUDGE_MODEL": "house-model"})


def test_a_forecast_reads_the_settings_of_a_judge_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates were read once for every answer."""
    calls: list[ModelName] = []
    monkeypatch.setattr(forecast, "address", lambda name, _: calls.append(name))
    question = Question(id="q", question="Where?", answers=("In Brel.",))
    forecast.forecast_judging([_OPENAI], Prices.load(), [(question, "In Brel.")] * 9, {}, repeat=3)
    assert calls == [_OPENAI]


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
