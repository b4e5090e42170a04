"""Requests from web pages: rejected by Host, Origin and Sec-Fetch-Site, unless there is a token."""

import socket
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.config import Config
from memoryd.daemon.daemon import _is_loopback


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(Config.from_env(tmp_path, {}), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1:1") as client:
        yield client


_OF_THIS_MACHINE: list[dict[str, str]] = [
    {"Host": "localhost"},
    {"Host": "LOCALHOST:80"},
    {"Host": "127.255.0.1:65535"},
    {"Host": "127.0.0.99"},
    {"Host": "[::1]:8080"},
    {"Host": "localhost:"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://localhost:3000", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "HTTP://[::1]"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
]
_OF_WEB_PAGES = [
    [("Host", "example.com")],
    [("Host", "localhost.")],
    [("Host", "localhost.example.com")],
    [("Host", "example.com#localhost")],
    [("Host", "127.0.0.1.example.com")],
    [("Host", "127.1")],
    [("Host", "127.0.0.256")],
    [("Host", "127.300.0.1:80")],
    [("Host", "0.0.0.0")],  # noqa: S104
    [("Host", "::1")],
    [("Host", "[::2]")],
    [("Host", "localhost:x")],
    [("Host", "localhost\n")],
    [("Host", "")],
    [("Host", "localhost"), ("Host", "example.com")],
    [("Origin", "null")],
    [("Origin", "")],
    [("Origin", "https://example.com")],
    [("Origin", "http://localhost.example.com")],
    [("Origin", "http://example.com/http://localhost")],
    [("Origin", "ftp://localhost")],
    [("Origin", "http://localhost"), ("Origin", "http://example.com")],
    [("Sec-Fetch-Site", "cross-site")],
]
_REQUESTS = [
    *product(("GET", "POST", "DELETE"), ("/healthz", "/v1/brains/b", "/v1/brains", "/nowhere"))
]


def test_requests_from_this_machine_are_served(http: TestClient) -> None:
    faults = []
    for number, headers in enumerate(_OF_THIS_MACHINE):
        body = f'{{"brainId": "b{number}"}}'.encode()
        answer = http.post("/v1/brains", content=body, headers=headers)
        if answer.status_code != 201:
            faults.append((headers, answer.status_code))
    assert faults == []


def test_requests_of_web_pages_are_rejected_without_effect(http: TestClient) -> None:
    brain = {"brainId": "b"}
    http.post("/v1/brains", json=brain)
    faults: list[tuple[object, ...]] = []
    for (method, target), headers in product(_REQUESTS, _OF_WEB_PAGES):
        answer = http.request(
            method,
            target,
            content=b'{"brainId": "c"}',
            headers=[*headers, ("X-Confirm-Delete", "yes"), ("Content-Type", "text/plain")],
        )
        brains = http.get("/v1/brains").json()
        if answer.status_code != 403 or answer.json()["code"] != "forbidden":
            faults.append((method, target, headers, answer.status_code, answer.text))
        if brains != {"items": [brain]}:
            faults.append((method, target, headers, "has an effect", brains))
            http.delete("/v1/brains/c", headers={"X-Confirm-Delete": "yes"})
            http.post("/v1/brains", json=brain)
    assert faults == []


def test_a_token_lets_requests_of_every_origin_pass(tmp_path: Path) -> None:
    app = create_app(Config.from_env(tmp_path, {}, "hush"), loopback=True)
    with TestClient(app, base_url="http://example.com") as http:
        headers = {"Origin": "null", "Authorization": "Bearer hush"}
        assert http.get("/v1/brains", headers=headers).status_code == 200


def test_another_address_lets_requests_of_every_origin_pass(tmp_path: Path) -> None:
    with TestClient(create_app(Config.from_env(tmp_path, {})), base_url="http://a.b") as http:
        assert http.get("/v1/brains").status_code == 200


@pytest.mark.parametrize(("address", "loopback"), [("127.0.0.9", True), ("0.0.0.0", False)])  # noqa: S104
def test_only_loopback_addresses_are_loopback(address: str, loopback: bool) -> None:  # noqa: FBT001
    with socket.socket() as listener:
        listener.bind((address, 0))
        assert _is_loopback(listener) == loopback
