"""Documents over HTTP: reads, writes, rejections."""

import base64
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.config import Config
from memoryd.daemon.providers import Providers
from memoryd.embed.embed import Vector
from memoryd.embed.featurehash import FeatureHash
from memoryd.upstream import UpstreamError

_B = "/v1/brains/b/documents"


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(Config.from_env(tmp_path, {"JB_EMBED_PROVIDER": "fake"}))
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/v1/brains", json={"brainId": "b"})
        yield client


def _ingest(http: TestClient, path: str, text: str, **more: object) -> None:
    encoded = base64.b64encode(text.encode()).decode()
    body = {"path": path, "contentType": "text/plain", "contentBase64": encoded, **more}
    assert http.post("/v1/brains/b/ingest/file", json=body).is_success


def _put(http: TestClient, path: str, content: bytes = b"zebra") -> int:
    return http.put(_B, params={"path": path}, content=content).status_code


def _rename(http: TestClient, path: str, to: str) -> int:
    return http.post(f"{_B}/rename", json={"from": path, "to": to}).status_code


def _read(http: TestClient, path: str) -> bytes | None:
    answer = http.get(f"{_B}/read", params={"path": path})
    return answer.content if answer.is_success else None


def _chunks(http: TestClient, query: str, mode: str = "bm25") -> list[dict[str, Any]]:
    body = {"query": query, "mode": mode}
    chunks: list[dict[str, Any]] = http.post("/v1/brains/b/search", json=body).json()["chunks"]
    return chunks


def _paths(http: TestClient, query: str, mode: str = "bm25") -> list[str]:
    return [chunk["path"] for chunk in _chunks(http, query, mode)]


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_document_is_read_as_it_was_stored(http: TestClient) -> None:
    content = bytes(range(256))
    assert _put(http, "a b/ü+.bin", content) == 204
    answer = http.get(f"{_B}/read?path=a+b/%C3%BC%2b.bin")
    assert answer.content == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-length"] == "256"


def test_stat_reports_documents_and_folders_with_documents(
    http: TestClient, tmp_path: Path
) -> None:
    _put(http, "d/_a.md")
    (tmp_path / "brains" / "b" / "empty").mkdir()
    document = http.get(f"{_B}/stat?path=d/_a.md").json()
    assert (document["path"], document["size"], document["is_dir"]) == ("d/_a.md", 5, False)
    assert document["mtime"].endswith("Z")
    assert datetime.fromisoformat(document["mtime"]).tzinfo is not None
    folder = http.get(f"{_B}/stat?path=d").json()
    assert (folder["size"], folder["is_dir"]) == (0, True)
    assert http.get(f"{_B}/stat?path=empty").status_code == 404


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/read?path=no"),
        ("GET", "/stat?path=no"),
        ("HEAD", "?path=no"),
        ("DELETE", "?path=no"),
        ("GET", "/read?path=d"),
        ("HEAD", "?path=d"),
        ("DELETE", "?path=d"),
        ("GET", "/read?path=d/a/below"),
    ],
)
def test_anything_but_a_document_is_not_chunks(http: TestClient, method: str, target: str) -> None:
    _put(http, "d/a")
    answer = http.request(method, _B + target)
    assert answer.status_code == 404
    assert (answer.content == b"") == (method == "HEAD")


def test_head_finds_a_document(http: TestClient) -> None:
    _put(http, "a")
    answer = http.head(f"{_B}?path=a")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["cache-control"] == "no-store"


def test_a_write_updates_the_index(http: TestClient) -> None:
    _put(http, "a", b"zebra")
    _put(http, "a", b"giraffe")
    assert (_paths(http, "zebra"), _paths(http, "giraffe")) == ([], ["a"])
    http.post(f"{_B}/append?path=a", content=b" elephant")
    assert _paths(http, "giraffe elephant", "semantic") == ["a"]
    assert _read(http, "a") == b"giraffe elephant"
    _rename(http, "a", "d/b")
    assert _paths(http, "giraffe") == ["d/b"]
    http.delete(f"{_B}?path=d/b")
    assert _paths(http, "giraffe") == []
    assert http.get("/v1/brains/b").json()["documents"] == 0


def test_append_creates(http: TestClient) -> None:
    assert http.post(f"{_B}/append?path=a", content=b"zebra").status_code == 204
    assert _read(http, "a") == b"zebra"


def test_hidden_documents_are_stored_but_not_chunks(http: TestClient) -> None:
    _put(http, "_a", b"zebra")
    assert _read(http, "_a") == b"zebra"
    assert _paths(http, "zebra") == []
    _rename(http, "_a", "a")
    assert _paths(http, "zebra") == ["a"]
    _rename(http, "a", "_a")
    assert _paths(http, "zebra") == []


@pytest.mark.parametrize("route", [("PUT", ""), ("POST", "/append")])
@pytest.mark.parametrize(("extra", "status"), [(0, 204), (1, 413)])
def test_the_limit_of_a_body_is_exact(
    http: TestClient, route: tuple[str, str], extra: int, status: int
) -> None:
    content = b"x" * (2 * 2**20 + extra)
    answer = http.request(route[0], f"{_B}{route[1]}?path=a", content=content)
    assert answer.status_code == status
    assert (_read(http, "a") is None) == bool(extra)


def test_a_rename_replaces_the_target_and_moves_the_sidecar(
    http: TestClient, tmp_path: Path
) -> None:
    _ingest(http, "a", "zebra", title="A")
    _ingest(http, "b", "giraffe", title="B")
    _put(http, "c", b"elephant")
    assert _rename(http, "a", "b") == 204
    assert [chunk["title"] for chunk in _chunks(http, "zebra")] == ["A"]
    assert _paths(http, "giraffe") == []
    assert _rename(http, "c", "b") == 204
    assert ["title" in chunk for chunk in _chunks(http, "elephant")] == [False]
    assert _files(tmp_path / "brains" / "b") == ["b"]
    assert _files(tmp_path / "meta" / "b") == []


def test_a_rename_to_its_own_path_changes_nothing(http: TestClient) -> None:
    assert _rename(http, "a", "a") == 404
    _put(http, "a")
    before = http.get(f"{_B}/stat?path=a").json()
    assert _rename(http, "a", "a") == 204
    assert http.get(f"{_B}/stat?path=a").json() == before


def test_a_sidecar_survives_writes_and_is_deleted_with_its_document(
    http: TestClient, tmp_path: Path
) -> None:
    _ingest(http, "d/a", "zebra", title="T", tags=["x"], metadata={"k": 1})
    _put(http, "d/a", b"giraffe")
    http.post(f"{_B}/append?path=d/a", content=b" elephant")
    [chunk] = _chunks(http, "elephant")
    assert (chunk["title"], chunk["metadata"]) == ("T", {"k": 1})
    http.delete(f"{_B}?path=d/a")
    assert _files(tmp_path / "meta" / "b") == []
    _put(http, "d/a", b"giraffe")
    assert "title" not in _chunks(http, "giraffe")[0]


def test_the_sidecar_of_a_document_removed_from_disk_is_ignored(
    http: TestClient, tmp_path: Path
) -> None:
    _ingest(http, "a", "zebra", title="T")
    (tmp_path / "brains" / "b" / "a").unlink()
    _put(http, "a.json/b", b"elephant")
    _ingest(http, "a.json/b", "elephant")
    assert _paths(http, "elephant") == ["a.json/b"]
    assert _files(tmp_path / "meta" / "b") == ["a.json", "a.json/b.json"]
    _ingest(http, "c", "zebra", title="T")
    (tmp_path / "brains" / "b" / "c").unlink()
    _put(http, "c", b"giraffe")
    assert "title" not in _chunks(http, "giraffe")[0]
    assert not (tmp_path / "meta" / "b" / "c.json").exists()


@pytest.mark.parametrize(
    ("there", "path"),
    [
        ("a", "a/b"),
        ("a/b/c", "a"),
        ("a/b/c", "a/b"),
        ("a", "a.json/b"),
        ("a.json/b", "a"),
        ("d/a", "d/a.json/b/c"),
    ],
)
def test_a_path_that_would_be_a_file_and_a_folder_conflicts(
    http: TestClient, tmp_path: Path, there: str, path: str
) -> None:
    _put(http, there)
    _put(http, "other", b"giraffe")
    before = _files(tmp_path)
    assert _put(http, path) == 409
    assert http.post(f"{_B}/append", params={"path": path}, content=b"x").status_code == 409
    assert _rename(http, "other", path) == 409
    assert _read(http, "other") == b"giraffe"
    assert _paths(http, "giraffe") == ["other"]
    assert _files(tmp_path) == before


@pytest.mark.parametrize(("path", "to"), [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b")])
def test_a_document_and_its_folder_may_change_places(http: TestClient, path: str, to: str) -> None:
    _ingest(http, path, "zebra", title="T")
    assert _rename(http, path, to) == 204
    assert [(chunk["path"], chunk["title"]) for chunk in _chunks(http, "zebra")] == [(to, "T")]
    assert _read(http, path) is None


def test_empty_folders_are_removed_but_never_that_of_the_brain(
    http: TestClient, tmp_path: Path
) -> None:
    _ingest(http, "d/e/f/a", "zebra")
    _put(http, "d/b")
    http.delete(f"{_B}?path=d/e/f/a")
    assert _files(tmp_path / "brains" / "b") == ["d", "d/b"]
    assert _files(tmp_path / "meta" / "b") == []
    http.delete(f"{_B}?path=d/b")
    assert _files(tmp_path / "brains") == ["b"]
    assert _put(http, "d") == 204


def test_foreign_empty_folders_do_not_conflict(http: TestClient, tmp_path: Path) -> None:
    (tmp_path / "brains" / "b" / "d" / "e").mkdir(parents=True)
    assert _put(http, "d") == 204
    assert _read(http, "d") == b"zebra"


def test_links_are_not_followed(http: TestClient, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("zebra")
    brain = tmp_path / "brains" / "b"
    (brain / "folder").symlink_to(outside)
    (brain / "file").symlink_to(outside / "secret")
    for path in ("folder/secret", "file"):
        assert _read(http, path) is None
        assert http.get(f"{_B}/stat", params={"path": path}).status_code == 404
        assert http.delete(_B, params={"path": path}).status_code == 404
        assert _rename(http, path, "x") == 404
    assert http.get(f"{_B}?recursive=true").json() == {"items": []}
    assert http.get(f"{_B}?dir=folder").json() == {"items": []}
    for path in ("folder/new", "folder/secret", "folder/d/new"):
        assert _put(http, path, b"giraffe") == 409
    # The link itself is in the brain, and is replaced.
    assert _put(http, "file", b"giraffe") == 204
    assert _files(outside) == ["secret"]
    assert (outside / "secret").read_text() == "zebra"


def test_sidecars_are_not_written_through_links(http: TestClient, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    _ingest(http, "other", "zebra")
    (tmp_path / "meta" / "b" / "d").symlink_to(outside)
    _ingest(http, "d/a", "giraffe", title="T")
    assert _chunks(http, "giraffe")[0]["title"] == "T"
    assert _files(outside) == []


def test_a_failing_embedder_changes_nothing(tmp_path: Path) -> None:
    class Failing(FeatureHash):
        fails = False

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if self.fails and texts:
                raise UpstreamError("bad_gateway", "away")
            return super().embed(texts)

    embedder = Failing()
    app = create_app(Config(tmp_path), Providers(embedder=embedder))
    with TestClient(app) as http:
        http.post("/v1/brains", json={"brainId": "b"})
        _ingest(http, "d/a", "zebra", title="T")
        before = _files(tmp_path)
        embedder.fails = True
        assert _put(http, "d/a", b"giraffe") == 502
        assert _put(http, "e/new", b"giraffe") == 502
        assert http.post(f"{_B}/append?path=d/a", content=b" giraffe").status_code == 502
        assert _rename(http, "d/a", "b") == 502
        assert _put(http, "_hidden", b"giraffe") == 204
        assert http.delete(f"{_B}?path=_hidden").status_code == 204
        assert _files(tmp_path) == before
        assert _read(http, "d/a") == b"zebra"
        assert _paths(http, "zebra giraffe") == ["d/a"]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"from": "a"},
        {"to": "b"},
        {"from": "a", "to": None},
        {"from": 1, "to": "b"},
        {"from": "../a", "to": "b"},
        {"from": "a", "to": "b/"},
    ],
)
def test_an_invalid_rename_is_rejected(http: TestClient, body: object) -> None:
    _put(http, "a")
    assert http.post(f"{_B}/rename", json=body).status_code == 400
    assert _read(http, "a") == b"zebra"


def test_acknowledged_writes_survive_a_restart(http: TestClient, tmp_path: Path) -> None:
    _put(http, "a", b"zebra")
    _rename(http, "a", "b")
    with TestClient(create_app(Config.from_env(tmp_path, {}))) as second:
        assert _read(second, "b") == b"zebra"
        assert _paths(second, "zebra") == ["b"]
