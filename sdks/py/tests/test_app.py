"""The HTTP API: rejected requests and their errors."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.api.requests import DECODED_LIMIT
from memoryd.config import Config, ConfigError

_ENV = {"JB_EMBED_PROVIDER": "fake", "JB_LLM_PROVIDER": "fake", "MEMCONFORM_RUN_ID": "run-7"}


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(Config.from_env(tmp_path, _ENV))
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/v1/brains", json={"brainId": "b"})
        yield client


def _document(path: str = "a.md", content: bytes = b"zebra") -> dict[str, Any]:
    encoded = base64.b64encode(content).decode()
    return {"path": path, "contentType": "text/plain", "contentBase64": encoded}


def test_health_and_version(http: TestClient) -> None:
    assert http.get("/healthz").json() == {"ok": True}
    version = http.get("/version").json()
    assert (version["contract"], version["runId"]) == ("1", "run-7")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", None, 404),
        ("PUT", "/v1/brains", None, 405),
        ("GET", "/v1/brains/b/search", None, 405),
        ("POST", "/v1/brains", {"brainId": "b"}, 409),
        ("POST", "/v1/brains", {"brainId": ".."}, 400),
        ("POST", "/v1/brains", {"brainId": "a b"}, 400),
        ("POST", "/v1/brains", {"brainId": "x" * 129}, 400),
        ("POST", "/v1/brains", {"brainId": 7}, 400),
        ("POST", "/v1/brains", None, 400),
        ("GET", "/v1/brains/unknown", None, 404),
        ("GET", "/v1/brains/%2e%2e", None, 400),
        ("GET", "/v1/brains/b%2Fsearch", None, 404),
        ("DELETE", "/v1/brains/b", None, 428),
        ("DELETE", "/v1/brains/unknown", None, 404),
        ("POST", "/v1/brains/b/search", {"query": ""}, 400),
        ("POST", "/v1/brains/b/search", {"query": "  "}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "topK": 0}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "topK": 1001}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "topK": "5"}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "topK": 5.5}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "topK": True}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "mode": "magic"}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "questionDate": "yesterday"}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "filters": {"colour": None}}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "tuning": {"magic": None}}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "questionDate": "2026-02-30"}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "filters": {"colour": "red"}}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "tuning": {"magic": 1}}, 400),
        ("POST", "/v1/brains/b/search", {"query": "x", "tuning": {"fusion": "sum"}}, 400),
        ("POST", "/v1/brains/b/search", [], 400),
        ("POST", "/v1/brains/b/ask", {"question": ""}, 400),
        ("POST", "/v1/brains/b/ask", {"question": "x", "readerMode": "wild"}, 400),
        ("POST", "/v1/brains/unknown/ask", {"question": "x"}, 404),
        ("POST", "/v1/brains/b/ingest/file", {"path": "a.md"}, 400),
        ("POST", "/v1/brains/b/ingest/file", _document("../a.md"), 400),
        ("POST", "/v1/brains/b/ingest/file", _document("/etc/passwd"), 400),
        ("POST", "/v1/brains/b/ingest/file", _document("a//b"), 400),
        ("POST", "/v1/brains/b/ingest/file", _document("a\\b"), 400),
        ("POST", "/v1/brains/b/ingest/file", _document("a\0b"), 400),
        ("POST", "/v1/brains/b/ingest/file", _document("x" * 251), 400),
        ("POST", "/v1/brains/b/ingest/file", _document() | {"contentBase64": "!"}, 400),
        ("POST", "/v1/brains/b/ingest/batch", {"documents": []}, 400),
        ("POST", "/v1/brains/b/ingest/batch", {"documents": [_document()] * 1025}, 400),
    ],
)
def test_failures_are_problem_json(
    http: TestClient, method: str, path: str, body: object, status: int
) -> None:
    answer = http.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert {"title", "detail", "code"} <= problem.keys()
    assert http.get("/v1/brains/b").json()["documents"] == 0


@pytest.mark.parametrize("raw", [b"", b"null", b"{", b"\xff", b'"x"'])
def test_a_body_that_is_not_an_object_is_rejected(http: TestClient, raw: bytes) -> None:
    assert http.post("/v1/brains/b/search", content=raw).status_code == 400


@pytest.mark.parametrize("number", ["5.0", "5e0"])
def test_a_float_without_a_fraction_is_an_integer(http: TestClient, number: str) -> None:
    body = f'{{"query": "x", "topK": {number}}}'
    assert http.post("/v1/brains/b/search", content=body).is_success


@pytest.mark.parametrize("key", ["topK", "mode", "readerMode", "filters", "candidateK", "model"])
def test_null_means_missing(http: TestClient, key: str) -> None:
    assert http.post("/v1/brains/b/ask", json={"question": "x", key: None}).is_success


def test_invalid_json_under_an_unknown_key_is_rejected(http: TestClient) -> None:
    body = b'{"query": "x", "colour": NaN}'
    assert http.post("/v1/brains/b/search", content=body).status_code == 400


@pytest.mark.parametrize(
    ("date", "status"),
    [
        ("0000-02-29", 200),
        ("0000-02-30", 400),
        ("2026-02-28T23:59:59.5+14:00", 200),
        ("2026-02-28T23:59:60Z", 400),
        ("2026-02-28T23:59:59-00:60", 400),
        ("2026-02-30T23:59:59Z", 400),
    ],
)
def test_question_dates_follow_rfc_3339(http: TestClient, date: str, status: int) -> None:
    body = {"query": "x", "questionDate": date}
    assert http.post("/v1/brains/b/search", json=body).status_code == status


def test_unknown_keys_are_ignored(http: TestClient) -> None:
    assert http.post("/v1/brains/b/search", json={"query": "x", "colour": "red"}).is_success


def test_an_invalid_document_in_a_batch_is_named_and_nothing_is_stored(http: TestClient) -> None:
    documents = [_document("a.md"), _document("b.md") | {"contentBase64": "*"}]
    answer = http.post("/v1/brains/b/ingest/batch", json={"documents": documents})
    assert answer.status_code == 400
    assert "documents[1]" in answer.json()["detail"]
    assert http.get("/v1/brains/b").json()["documents"] == 0


@pytest.mark.parametrize(("extra", "status"), [(0, 200), (1, 413)])
def test_the_size_limit_is_exact(http: TestClient, extra: int, status: int) -> None:
    content = b"x" * (DECODED_LIMIT + extra)
    answer = http.post("/v1/brains/b/ingest/file", json=_document(content=content))
    assert answer.status_code == status
    half = DECODED_LIMIT // 2
    batch = [_document("a.md", b"x" * half), _document("b.md", b"x" * (half + extra))]
    answer = http.post("/v1/brains/b/ingest/batch", json={"documents": batch})
    assert answer.status_code == status


def test_a_body_over_the_drain_limit_is_rejected(http: TestClient) -> None:
    for path in ("/v1/brains/b/search", "/v1/brains/unknown/ask"):
        assert http.post(path, content=b"x" * (17 * 2**20)).status_code == 413


def test_the_allow_header_lists_every_method(http: TestClient) -> None:
    allowed = http.put("/v1/brains").headers["allow"]
    assert {"GET", "POST"} <= {method.strip() for method in allowed.split(",")}


def test_without_a_reader_ask_is_a_bad_gateway(tmp_path: Path) -> None:
    with TestClient(create_app(Config.from_env(tmp_path, {}))) as http:
        http.post("/v1/brains", json={"brainId": "b"})
        assert http.post("/v1/brains/b/ask", json={"question": "x"}).status_code == 502


@pytest.mark.parametrize(
    ("more", "echoed"),
    [
        ({"mode": "hybrid"}, {"kernel": "cosine", "fusion": "rrf", "rrfK": 10, "poolFactor": 9}),
        ({"mode": "hybrid", "candidateK": 7}, {"kernel": "cosine", "fusion": "rrf", "rrfK": 10}),
        ({"mode": "semantic"}, {"kernel": "cosine"}),
        ({"mode": "bm25"}, {}),
    ],
)
def test_only_applied_tuning_is_echoed(
    http: TestClient, more: dict[str, object], echoed: dict[str, object]
) -> None:
    tuning = {"fusion": "rrf", "rrfK": 10, "alpha": 0.1, "poolFactor": 9}
    body = {"query": "zebra", "tuning": {"kernel": "cosine", **tuning}, **more}
    trace = http.post("/v1/brains/b/search", json=body).json()["trace"]
    assert trace["tuning"] == echoed


@pytest.mark.parametrize("value", ["NaN", "Infinity", '"\\ud800"'])
def test_metadata_that_json_cannot_represent_is_rejected(http: TestClient, value: str) -> None:
    document = json.dumps(_document())[:-1] + f', "metadata": {{"x": {value}}}}}'
    answer = http.post("/v1/brains/b/ingest/file", content=document)
    assert answer.status_code == 400
    assert http.get("/v1/brains/b").json()["documents"] == 0


def _nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [201, 1001, 2**20])
def test_json_nested_too_deep_is_rejected(http: TestClient, levels: int) -> None:
    document = json.dumps(_document())[:-1]
    for raw in (
        _nested(levels),
        "[" * levels,
        document + f', "metadata": {{"x": {_nested(levels)}}}}}',
        document + f', "unknown": {_nested(levels)}}}',
    ):
        assert http.post("/v1/brains/b/ingest/file", content=raw).status_code == 400
    assert http.get("/v1/brains/b").json()["documents"] == 0


def test_metadata_of_64_levels_is_returned(http: TestClient) -> None:
    metadata = {"x": json.loads(_nested(63))}
    document = _document() | {"metadata": metadata}
    assert http.post("/v1/brains/b/ingest/file", json=document).is_success
    assert http.put("/v1/brains/b/documents?path=a.md", content=b"giraffe").is_success
    [found] = http.post("/v1/brains/b/search", json={"query": "giraffe"}).json()["chunks"]
    assert found["metadata"] == metadata


def test_a_sidecar_nested_too_deep_is_ignored_and_kept(http: TestClient, tmp_path: Path) -> None:
    """Another daemon on the same folder may accept deeper JSON."""
    assert http.post("/v1/brains/b/ingest/file", json=_document()).is_success
    sidecar = tmp_path / "meta" / "b" / "a.md.json"
    sidecar.write_text('{"metadata": {"x": ' + _nested(990) + "}}")
    assert http.put("/v1/brains/b/documents?path=a.md", content=b"zebra").is_success
    [found] = http.post("/v1/brains/b/search", json={"query": "zebra"}).json()["chunks"]
    assert "metadata" not in found
    assert _nested(990) in sidecar.read_text()


def test_an_unknown_provider_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="JB_LLM_PROVIDER=gpt"):
        Config.from_env(tmp_path, {"JB_LLM_PROVIDER": "gpt"})
