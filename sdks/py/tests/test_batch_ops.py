"""Batches of operations: in order, atomic, with the rejected operation named."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def _write(path: str, content: bytes = b"zebra", how: str = "write") -> dict[str, Any]:
    encoded = base64.b64encode(content).decode()
    return {"type": how, "path": path, "content_base64": encoded}


def _append(path: str, content: bytes) -> dict[str, Any]:
    return _write(path, content, "append")


def _delete(path: str) -> dict[str, Any]:
    return {"type": "delete", "path": path}


def _rename(path: str, to: str) -> dict[str, Any]:
    return {"type": "rename", "path": path, "to": to}


def _post(http: TestClient, *ops: object, **more: object) -> tuple[int, dict[str, Any]]:
    answer = http.post(f"{_B}/batch-ops", json={"ops": ops, **more})
    return answer.status_code, answer.json()


def _all(http: TestClient) -> dict[str, bytes]:
    items = http.get(f"{_B}?recursive=true&include_generated=true").json()["items"]
    paths = [item["path"] for item in items]
    return {path: http.get(f"{_B}/read", params={"path": path}).content for path in paths}


def test_each_operation_sees_the_previous_ones(http: TestClient) -> None:
    http.put(f"{_B}?path=old", content=b"giraffe")
    status, answer = _post(
        http,
        _write("a", b"one"),
        _append("a", b" two"),
        _rename("a", "d/b"),
        _append("d/b", b" three"),
        _append("old", b" four"),
        _rename("old", "new"),
        _write("gone"),
        _delete("gone"),
        _rename("new", "new"),
    )
    assert (status, answer) == (200, {"committed": 9})
    assert _all(http) == {"d/b": b"one two three", "new": b"giraffe four"}
    for query, path in (("three", "d/b"), ("giraffe", "new")):
        found = http.post("/v1/brains/b/search", json={"query": query, "mode": "bm25"}).json()
        assert [chunk["path"] for chunk in found["chunks"]] == [path]
    assert http.get("/v1/brains/b").json()["documents"] == 2


@pytest.mark.parametrize(
    "ops",
    [
        [_write("d"), _delete("d"), _write("d/e")],
        [_write("d/e"), _delete("d/e"), _write("d")],
        [_delete("there/a"), _write("there")],
        [_rename("there/a", "there")],
        [_delete("there/a"), _write("there"), _delete("there"), _write("there/b")],
        [_rename("there/a", "x.json/y"), _delete("x.json/y"), _write("x")],
    ],
)
def test_a_path_freed_by_an_operation_can_be_reused(http: TestClient, ops: list[object]) -> None:
    http.put(f"{_B}?path=there/a", content=b"zebra")
    assert _post(http, *ops)[0] == 200


@pytest.mark.parametrize(
    ("op", "status"),
    [
        (_delete("no"), 404),
        (_rename("no", "no"), 404),
        (_rename("no", "x"), 404),
        (_delete("a"), 404),
        (_write("new/below"), 409),
        (_write("new.json/below"), 409),
        (_write("d"), 409),
        (_rename("new", "d"), 409),
        (_append("d", b""), 409),
    ],
)
def test_a_rejected_operation_is_named_and_undoes_all(
    http: TestClient, tmp_path: Path, op: object, status: int
) -> None:
    http.put(f"{_B}?path=a", content=b"zebra")
    http.put(f"{_B}?path=d/e", content=b"zebra")
    before = sorted(tmp_path.rglob("*"))
    got, answer = _post(http, _write("new"), _rename("a", "b"), op)
    assert got == status
    assert "ops[2]" in answer["detail"]
    assert _all(http) == {"a": b"zebra", "d/e": b"zebra"}
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "op",
    [
        None,
        "write",
        {},
        {"type": "write", "path": "b"},
        {"type": "write", "path": "b", "content_base64": None},
        {"type": "append", "path": "b", "content_base64": "*"},
        {"type": "append", "path": "b", "content_base64": "YQ"},
        {"type": "move", "path": "a"},
        {"type": "rename", "path": "a"},
        {"type": "rename", "path": "a", "to": "../b"},
        {"type": "rename", "path": "a", "to": 5},
        {"type": "delete"},
        {"type": "delete", "path": ""},
        {"type": "delete", "path": "/a"},
        {"type": "delete", "path": 1},
    ],
)
def test_an_invalid_operation_is_rejected_before_any_is_applied(
    http: TestClient, op: object
) -> None:
    http.put(f"{_B}?path=a", content=b"zebra")
    status, answer = _post(http, _delete("no"), op)
    assert status == 400
    assert "ops[1]" in answer["detail"]


@pytest.mark.parametrize(
    "body",
    [{}, {"ops": []}, {"ops": None}, {"ops": {}}, {"ops": [_write("a")], "reason": 1}, [], None],
)
def test_an_invalid_batch_is_rejected(http: TestClient, body: object) -> None:
    assert http.post(f"{_B}/batch-ops", json=body).status_code == 400
    assert _all(http) == {}


@pytest.mark.parametrize("key", ["reason", "message", "author", "email"])
def test_an_annotation_is_limited_in_bytes(http: TestClient, key: str) -> None:
    assert _post(http, _write("a"), **{key: "ü" * 2_048})[0] == 200
    status, answer = _post(http, _write("b"), **{key: "ü" * 2_048 + "x"})
    assert (status, answer["code"]) == (400, "validation_error")
    assert key in answer["detail"]
    assert list(_all(http)) == ["a"]


def test_many_appends_take_linear_time(http: TestClient) -> None:
    ops = [_write("a", b"x" * 2**20)]
    ops += [_append("a", b"%d " % number) for number in range(1_000)]
    ops += [_rename("a", "b"), _append("b", b"end"), _append("c", b"1"), _append("c", b"2")]
    assert _post(http, *ops)[0] == 200
    appended = b"".join(b"%d " % number for number in range(1_000))
    assert _all(http) == {"b": b"x" * 2**20 + appended + b"end", "c": b"12"}
    ops = [_append("b", b"lost"), _delete("b"), _append("b", b"new"), _append("c", b"lost")]
    assert _post(http, *ops, _write("c", b"new"))[0] == 200
    assert _all(http) == {"b": b"new", "c": b"new"}


def test_keys_that_an_operation_does_not_use_are_ignored(http: TestClient) -> None:
    extra = {"to": "../x", "colour": 1}
    status, answer = _post(
        http,
        _write("a", b"") | extra,
        _delete("a") | extra | {"content_base64": "*"},
        _write("a") | {"to": 5},
        _rename("a", "b") | {"content_base64": []},
        author=None,
        email="x",
    )
    assert (status, answer) == (200, {"committed": 4})


@pytest.mark.parametrize(("count", "status"), [(1_024, 200), (1_025, 413)])
def test_the_limit_of_operations_is_exact(http: TestClient, count: int, status: int) -> None:
    ops = [_write(f"{number}", b"x") for number in range(count)]
    assert _post(http, *ops)[0] == status
    assert len(http.get(_B).json()["items"]) == (count if status == 200 else 0)


@pytest.mark.parametrize(("extra", "status"), [(0, 200), (1, 413)])
def test_the_limit_of_content_is_exact(http: TestClient, extra: int, status: int) -> None:
    half = 4 * 2**20
    ops = [_write("a", b"x" * half), _append("a", b"x" * (half + extra))]
    assert _post(http, *ops)[0] == status
    assert bool(_all(http)) == (status == 200)


def test_a_sidecar_follows_its_document(http: TestClient, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        body = {
            "path": name,
            "contentType": "text/plain",
            "contentBase64": "emVicmE=",
            "title": name,
        }
        assert http.post("/v1/brains/b/ingest/file", json=body).is_success
    ops = [
        _rename("a", "moved/a"),
        _write("moved/a"),
        _delete("b"),
        _write("b"),
        _write("plain"),
        _rename("plain", "c"),
    ]
    assert _post(http, *ops)[0] == 200
    found = http.post("/v1/brains/b/search", json={"query": "zebra"}).json()["chunks"]
    assert {chunk["path"]: chunk.get("title") for chunk in found} == {
        "moved/a": "a",
        "b": None,
        "c": None,
    }
    sidecars = tmp_path / "meta" / "b"
    assert [path.relative_to(sidecars) for path in sidecars.rglob("*.json")] == [
        Path("moved/a.json")
    ]
