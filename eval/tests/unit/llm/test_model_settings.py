"""Settings of model services: what a shell holds becomes settings, or an error that names it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform import redaction
from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.llm.names import PROVIDERS, ModelName
from memconform.llm.prices import Prices
from memconform.llm.settings import (
    endpoint,
    is_configured,
    model_environment,
    service_settings,
)
from memconform.network import certificates
from memconform.scoring.judge import forecast
from memconform.scoring.judge.session import judge_names
from tests.unit.model_services import ANY_HOST, FAR, KEY, OPENAI_NAME, refusal


@pytest.mark.parametrize("key", ["sk a", "sk\nb", "schlüssel", '"sk-0123456789"', "sk\tc", "'k'"])
def test_a_key_with_what_no_key_has_is_named_and_not_shown(key: str) -> None:
    error = refusal(OPENAI_NAME, {"OPENAI_API_KEY": key})
    assert error.code == "bad_api_key"
    assert "OPENAI_API_KEY" in error.message
    assert key not in error.message


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_an_empty_key_is_no_key(key: str) -> None:
    assert refusal(OPENAI_NAME, {"OPENAI_API_KEY": key}).code == "no_api_key"
    assert not is_configured("openai", {"OPENAI_API_KEY": key})


def test_socks_without_its_package_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """ImportError, exit 70, even for the judge on loopback."""
    env = KEY | {"ALL_PROXY": "socks5://127.0.0.1:1080"}
    monkeypatch.setattr("memconform.network.find_spec", lambda _: None)
    error = refusal(OPENAI_NAME, env)
    assert error.code == "no_socks"
    assert "ALL_PROXY" in error.message
    assert "pip install socksio" in error.hint
    assert endpoint(ModelName("ollama", "m"), env).proxy is None
    monkeypatch.setattr("memconform.network.find_spec", lambda _: object())
    assert endpoint(OPENAI_NAME, env).proxy is not None


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
        env = KEY | {variable: str(path)}
        error = refusal(OPENAI_NAME, env)
        assert error.code == "bad_certificates"
        assert variable in error.message
        assert str(path) in error.message
        assert fault in error.message
        plain = env | {"OPENAI_BASE_URL": "http://models.example/v1"}
        assert endpoint(OPENAI_NAME, plain).certificates is None
    assert certificates({"SSL_CERT_FILE": "", "SSL_CERT_DIR": " "}, FAR) is None


def test_certificates_that_exist_are_used() -> None:
    bundle = pytest.importorskip("certifi").where()
    where = endpoint(OPENAI_NAME, KEY | {"SSL_CERT_FILE": bundle})
    assert where.certificates is not None
    assert where.certificates.context().cert_store_stats()["x509_ca"] > 0


def test_what_results_say_of_a_service_has_no_secret() -> None:
    env = {
        "OPENAI_API_KEY": "sk-canary",
        "OPENAI_BASE_URL": "https://me:canary@models.example/v1",
        "HTTPS_PROXY": "http://me:canary@proxy.example:3128",
    }
    where = endpoint(OPENAI_NAME, model_environment(("X-Team: canary",), env))
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
        *("http", "https", "socks5", "ftp", "://", "[", "]", "::1", "127.0.0.1", ANY_HOST, "h"),
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


def test_a_judge_of_the_environment_that_nobody_knows_is_named_with_its_variable() -> None:
    for value in ("", " \n"):
        assert judge_names((), {"JB_EVAL_JUDGE_MODEL": value, **KEY})[0].provider == "openai"
    with pytest.raises(UsageError, match=r"JB_EVAL_JUDGE_MODEL: .*'house-model'"):
        judge_names((), {"JB_EVAL_JUDGE_MODEL": "house-model"})


def test_a_forecast_reads_the_settings_of_a_judge_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates were read once for every answer."""
    calls: list[ModelName] = []
    monkeypatch.setattr(forecast, "address", lambda name, _: calls.append(name))
    question = Question(id="q", question="Where?", answers=("In Brel.",))
    forecast.forecast_judging(
        [OPENAI_NAME], Prices.load(), [(question, "In Brel.")] * 9, {}, repeat=3
    )
    assert calls == [OPENAI_NAME]
