"""Proxies of model services: which variable names one, and which servers are reached without."""

import tomllib

import pytest

from memconform.llm.names import ModelName
from memconform.llm.settings import (
    endpoint,
)
from memconform.network import is_loopback, proxy_for
from tests.unit.model_services import ANY_HOST, FAR, KEY, OPENAI_NAME, refusal

_PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST")),
        *((host, True) for host in ("ip6-localhost", "localhost.localdomain", "IP6-loopback")),
        *((host, True) for host in ("a.localhost", "localhost.", "127.1", "0x7f.1", ANY_HOST)),
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
    proxy = proxy_for(FAR, env)
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
        proxy = proxy_for(FAR, {"HTTPS_PROXY": _PROXY, variable: entry})
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
    error = refusal(OPENAI_NAME, KEY | {"HTTPS_PROXY": value})
    assert error.code == "bad_proxy"
    assert "HTTPS_PROXY" in error.message
    assert "NO_PROXY=api.openai.com" in error.hint
    local = {"OPENAI_BASE_URL": "https://127.0.0.1:1/v1", "HTTPS_PROXY": value}
    assert endpoint(OPENAI_NAME, KEY | local).proxy is None
    assert endpoint(OPENAI_NAME, KEY | {"HTTPS_PROXY": value, "NO_PROXY": "*"}).proxy is None


def test_a_proxy_without_a_scheme_is_one_of_http() -> None:
    proxy = proxy_for(FAR, {"HTTPS_PROXY": "proxy.example:3128"})
    assert proxy is not None
    assert proxy.url == _PROXY


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
