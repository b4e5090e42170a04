"""What is shown of an address whose user info or query is a secret."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform import redaction
from memconform.datasets.download import pinned
from memconform.datasets.sources import known_sources
from memconform.errors import UsageError
from memconform.llm.addresses import service_address
from memconform.network import proxy_for

_MARKS = "@:/?#\\%&=+!$'()*,;.-_~[] "
_URLISH = st.text("abcXYZ019" + _MARKS, min_size=1, max_size=12)
_USERS = st.text("uvwUVW78" + _MARKS, min_size=1, max_size=12)
"""Of other letters, so that no part of a name is one of a password, too."""


def _shown(refuse: Callable[[], object]) -> str:
    """What a user sees of an error."""
    try:
        return str(refuse())
    except UsageError as error:
        return redaction.redact(f"{error.message} {error.hint} {error.excerpt}")


@given(user=_USERS, before=_URLISH, behind=_URLISH, scheme=st.sampled_from(["http://", ""]))
def test_no_part_of_a_password_in_an_address_is_shown(
    user: str, before: str, behind: str, scheme: str
) -> None:
    """Only what stood before the first at sign or slash was masked."""
    redaction.forget()
    password = f"{before}Geheim{behind}Wort"
    parts = {password[i : i + 4] for i in range(len(password) - 3)}
    parts = {part for part in parts if any(map(str.isalpha, part))}
    address = f"{scheme}{user}:{password}@127.0.0.1:1"
    source = known_sources()["locomo"]
    shown = [
        _shown(lambda: proxy_for("https://models.example", {"HTTPS_PROXY": address})),
        _shown(lambda: redaction.masked_address(service_address(address, "OPENAI_BASE_URL"))),
        _shown(lambda: pinned(source.at(f"{address}/x/"), Path())[0].shown_url),
        redaction.masked_address(address),
        redaction.redact(f"cannot reach {address}"),
    ]
    for text in shown:
        assert not {part for part in parts if part in text}, text


def test_the_password_of_an_address_without_a_scheme_is_hidden() -> None:
    address = "://:0Geheim0Wort@127.0.0.1:1"
    _shown(lambda: service_address(address, "OPENAI_BASE_URL"))
    assert "Geheim" not in redaction.redact(f"cannot reach {address}")


def test_no_address_is_suggested_that_begins_in_a_password() -> None:
    """What stood before `#` was suggested as a host: the beginning of a user name."""
    with pytest.raises(UsageError) as caught:
        service_address("http://start#rest:password@127.0.0.1:1", "OPENAI_BASE_URL")
    assert "http://HOST:PORT" in caught.value.hint


@pytest.mark.parametrize("place", ["127.0.0.1:1", "proxy.example", "[::1]:8080/v1"])
@pytest.mark.parametrize("password", ["Top@Secret99", "Top:Secret99", "@@", "a:b@c"])
def test_user_info_ends_at_the_last_at_sign(password: str, place: str) -> None:
    text = f"the proxy http://user:{password}@{place} (HTTPS_PROXY) failed: me@x.example"
    assert redaction.without_credentials(text) == (
        f"the proxy http://(hidden)@{place} (HTTPS_PROXY) failed: me@x.example"
    )


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:1/v1?key=Secret99", "http://127.0.0.1:1/v1?(hidden)"),
        ("http://127.0.0.1:1/v1#Secret99", "http://127.0.0.1:1/v1#(hidden)"),
        ("http://127.0.0.1:1/x/?token=Secret99&f=", "http://127.0.0.1:1/x/?(hidden)"),
        ("http://127.0.0.1:1/x?a=me@Secret99", "http://(hidden)"),
        ("127.0.0.1:1/v1?key=Secret99", "127.0.0.1:1/v1?(hidden)"),
        ("https://proxy.example/module@v1", "https://proxy.example/module@v1"),
        ("https://models.example/v1", "https://models.example/v1"),
    ],
)
def test_queries_and_fragments_of_addresses_are_masked(address: str, shown: str) -> None:
    assert redaction.masked_address(address) == shown


@pytest.mark.parametrize(
    ("character", "code"), [("/", "2F"), ("?", "3F"), ("#", "23"), ("\\", "5C")]
)
def test_a_password_that_must_be_encoded_is_explained(character: str, code: str) -> None:
    address = f"http://user:Top{character}Secret99@127.0.0.1:1"
    for refuse in (
        lambda: proxy_for("https://models.example", {"HTTPS_PROXY": address}),
        lambda: service_address(f"{address}/v1", "OPENAI_BASE_URL"),
    ):
        shown = _shown(refuse)
        assert f"%{code}" in shown
        assert "Secret99" not in shown
        assert "Top" not in shown


@pytest.mark.parametrize("query", ["?token=Secret99&f=", "#Secret99", ""])
def test_the_address_of_a_download_is_shown_without_its_secrets(query: str) -> None:
    shown = _shown(lambda: known_sources()["locomo"].at(f"http://me:Pass99@127.0.0.1:1/x{query}"))
    assert "bad_address" not in shown
    assert "is not the address of a folder" in shown
    assert "99" not in shown
