"""Query parameters of the document routes, and requests that no route serves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.config import Config

_B = "/v1/brains/b/documents"


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(Config.from_env(tmp_path, {"JB_EMBED_PROVIDER": "fake"}))
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/v1/brains", json={"brainId": "b"})
        yield client


@pytest.mark.parametrize(
    "query",
    [
        "",
        "path",
        "path=",
        "path=a&path=a",
        "path=a&p%61th=b",
        "path=%",
        "path=%4",
        "path=%zz",
        "path=%ff",
        "path=a&x=%",
        "path=../b",
        "path=%2e%2e%2fb",
        "path=/a",
        "path=a//b",
        "path=a%00b",
        "path=a%5cb",
        "path=" + "x" * 251,
    ],
)
def test_every_route_rejects_an_invalid_path(http: TestClient, tmp_path: Path, query: str) -> None:
    for method, route in (
        ("GET", "/read"),
        ("GET", "/stat"),
        ("HEAD", ""),
        ("DELETE", ""),
        ("PUT", ""),
        ("POST", "/append"),
    ):
        assert http.request(method, f"{_B}{route}?{query}").status_code == 400
    assert [path.name for path in (tmp_path / "brains").rglob("*")] == ["b"]


@pytest.mark.parametrize(
    "query",
    [
        "recursive=",
        "recursive=1",
        "recursive=True",
        "include_generated=no",
        "dir=..",
        "dir=a/",
        "glob=a&glob=a",
        "recursive=true&recursive=true",
    ],
)
def test_an_invalid_listing_is_rejected(http: TestClient, query: str) -> None:
    assert http.get(f"{_B}?{query}").status_code == 400


def test_unknown_parameters_are_ignored(http: TestClient) -> None:
    assert http.get(f"{_B}?colour=red&colour=red").json() == {"items": []}


def test_unknown_brains_have_no_documents(http: TestClient) -> None:
    other = "/v1/brains/other"
    for method, route in (
        ("GET", "/documents"),
        ("PUT", "/documents?path=%"),
        ("POST", "/documents/rename"),
        ("POST", "/documents/batch-ops"),
        ("GET", "/events"),
    ):
        assert http.request(method, other + route).status_code == 404


def test_a_wrong_method_is_answered_with_the_allowed_ones(http: TestClient) -> None:
    answer = http.post(_B)
    assert answer.status_code == 405
    allowed = {method.strip() for method in answer.headers["allow"].split(",")}
    assert allowed == {"GET", "HEAD", "PUT", "DELETE"}
