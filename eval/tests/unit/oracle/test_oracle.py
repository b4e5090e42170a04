"""What the oracle permits: one test for each group of rules, with what it must not permit."""

from typing import Any

import pytest

from memconform.contract.schemas import ROUTES
from memconform.fuzzing.programs import document
from memconform.oracle.daemon import OracleDaemon
from memconform.oracle.front_matter import split
from memconform.oracle.paths import conflicts
from memconform.oracle.predictions import Omittable, Prediction
from memconform.oracle.search import Providers

_URL = "/v1/brains/b"


class _Client:
    """Sends requests to the oracle, each of which is answered by the first option."""

    def __init__(self, providers: Providers | None = None) -> None:
        self.oracle = OracleDaemon(providers or Providers())
        self.oracle.create("b")

    def predict(self, method: str, target: str, body: Any = None, **headers: str) -> Prediction:
        prediction = self.oracle.predict(method, target, body, headers)
        assert prediction is not None
        return prediction

    def send(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        option = self.predict(method, f"{_URL}{target}", body, **headers).options[0]
        option.apply()
        return option.status, option.body

    def ingest(self, *documents: dict[str, Any]) -> tuple[int, Any]:
        return self.send("POST", "/ingest/batch", {"documents": [*documents]})

    def found(self, query: str = "heron", **more: Any) -> list[str]:
        status, body = self.send("POST", "/search", {"query": query, **more})
        assert status == 200
        return [chunk["path"] for chunk in body["chunks"]]


@pytest.fixture
def client() -> _Client:
    client = _Client()
    client.ingest(
        document("a.md", b"The heron waits."),
        document("raw/b.md", b"A heron, a kettle.", tags=["red"], metadata={"session_id": "s"}),
        document("_h.md", b"heron"),
        document("c.bin", b"heron \xff"),
    )
    return client


@pytest.mark.parametrize(
    ("path", "other", "conflict"),
    [
        ("a", "a/b", True), ("a/b", "a", True), ("a", "a.json/b", True), ("a.json/b", "a", True),
        ("a", "a.json", False), ("a", "ab/c", False), ("a/b", "a/c", False), ("a", "a", False),
    ],
)  # fmt: skip
def test_conflicts(path: str, other: str, *, conflict: bool) -> None:
    assert conflicts(path, [other]) is conflict


@pytest.mark.parametrize(
    ("text", "metadata", "body"),
    [
        ("---\na: b\n---\nc", {"a": "b"}, "c"),
        ("---\r\na: 'b'\r\n---\r\nc", {"a": "b"}, "c"),
        ('---\na: [b, "c"]\n---\n', {"a": ["b", "c"]}, ""),
        ("---\na: []\n---\n", {"a": []}, ""),
        ("---\na b\n---\nc", {}, "---\na b\n---\nc"),
        ("---\na: b\n", {}, "---\na: b\n"),
        (" ---\na: b\n---\n", {}, " ---\na: b\n---\n"),
        ("--- \na: b\n---\n", {}, "--- \na: b\n---\n"),
        ("---\n\x0b: b\n---\n", {}, "---\n\x0b: b\n---\n"),
    ],
)
def test_front_matter(text: str, metadata: dict[str, Any], body: str) -> None:
    assert split(text) == (metadata, body)


def test_hidden_documents_and_bytes_are_stored_but_not_found(client: _Client) -> None:
    assert client.found() == ["a.md", "raw/b.md"]
    status, counts = client.send("GET", "")
    assert status == 200
    assert [counts[k] for k in ("documents", "chunks", "vectors", "pending")] == [3, 2, 2, 0]
    assert client.send("GET", "/documents/read?path=c.bin") == (200, b"heron \xff")


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({"scope": "raw"}, ["raw/b.md"]), ({"pathPrefix": "a"}, ["a.md"]), ({"tags": []}, []),
        ({"tags": ["red", "x"]}, ["raw/b.md"]), ({"sessionIds": ["s"]}, ["raw/b.md"]),
        ({"paths": ["a.md"], "scope": "raw"}, []), ({"project": "p"}, []),
        ({"paths": None}, ["a.md", "raw/b.md"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["bm25", "semantic", "hybrid"])
def test_filters(client: _Client, filters: Any, paths: list[str], mode: str) -> None:
    assert sorted(client.found(filters=filters, mode=mode)) == paths


def test_semantic_ranks_what_bm25_does_not_find(client: _Client) -> None:
    assert client.found("kettle", mode="bm25") == ["raw/b.md"]
    assert len(client.found("kettle", mode="semantic")) == 2
    assert client.found("?!", mode="semantic") == []


def test_a_filter_does_not_change_scores(client: _Client) -> None:
    for mode in ("bm25", "semantic"):
        bodies = [
            client.send("POST", "/search", {"query": "heron", "mode": mode} | more)[1]
            for more in ({}, {"filters": {"scope": "raw"}})
        ]
        scores = [{c["path"]: c["score"] for c in body["chunks"]} for body in bodies]
        assert scores[1] == {"raw/b.md": scores[0]["raw/b.md"]}


def test_without_an_embedder_every_mode_is_bm25() -> None:
    client = _Client(Providers(embedder=False))
    client.ingest(document("a.md", b"heron"))
    _, body = client.send("POST", "/search", {"query": "heron", "mode": "hybrid"})
    assert body["trace"]["effectiveMode"] == "bm25"
    assert body["trace"]["fellBackToBm25"]
    assert client.send("GET", "")[1]["vectors"] == 0


def test_a_should_rule_may_be_rejected_or_ignored_by_a_daemon_without_it() -> None:
    client = _Client(Providers(kernel=False))
    body = {"query": "heron", "tuning": {"kernel": "inverse-l2"}}
    statuses = [o.status for o in client.predict("POST", f"{_URL}/search", body).options]
    assert statuses == [200, 400]


@pytest.mark.parametrize(
    ("target", "body", "status", "rule"),
    [
        ("/search", {"query": "\u2003"}, 400, "core.search.refuse"),
        ("/search", {"query": 5}, 400, "wire.types"),
        ("/search", {"query": "a", "topK": True}, 400, "wire.types"),
        ("/search", {"query": "a", "topK": 5.0}, 200, "core.search.shape"),
        ("/search", {"query": "a", "topK": 1_001}, 400, "core.search.refuse"),
        ("/search", {"query": "a", "questionDate": "2023-02-29"}, 400, "core.search.refuse"),
        ("/search", {"query": "a", "tuning": {"alpha": 2}}, 400, "core.tuning"),
        ("/search", {"query": "a", "filters": {"x": None}}, 400, "wire.unknown-keys"),
        ("/search", {"query": "a", "x": {}}, 200, "core.search.shape"),
        ("/ask", {"question": "a", "readerMode": "x"}, 400, "ask.before-stream"),
        ("/ingest/file", {"path": "a"}, 400, "core.ingest.refuse"),
        ("/ingest/file", document("a/../b", b""), 400, "core.ingest.path"),
        ("/ingest/file", document("a", b"", metadata={"a": 10**400}), 400, "core.ingest.refuse"),
        ("/ingest/batch", {"documents": []}, 400, "core.ingest.batch"),
        ("/documents/batch-ops", {"ops": []}, 400, "documents.batch.refuse"),
        ("/documents/rename", {"from": "a.md"}, 400, "wire.types"),
        ("/documents/rename", {"from": "a.md", "to": "raw"}, 409, "documents.conflict"),
        ("/documents/rename", {"from": "x", "to": "y"}, 404, "documents.missing"),
        ("/search", b"[]", 400, "robust.body"),
        ("/search", b'{"query": "\\ud800"}', 400, "robust.body"),
        ("/search", b'{"query": NaN}', 400, "robust.body"),
        ("/search", b'{"query": "heron", "x": ' + b"[" * 1_001 + b"]" * 1_001 + b"}", 400,
         "robust.depth"),
        ("/search/x", {}, 404, "wire.problem"),
    ],
)  # fmt: skip
def test_a_request_has_one_answer(
    client: _Client, target: str, body: Any, status: int, rule: str
) -> None:
    [option] = client.predict("POST", f"{_URL}{target}", body).options
    assert (option.status, option.rule) == (status, rule)


def test_a_wrong_method_names_the_right_ones(client: _Client) -> None:
    [option] = client.predict("PATCH", f"{_URL}/documents?path=a.md", b"").options
    assert option.status == 405
    assert option.headers == {"allow": {"get", "put", "delete"}}


def test_of_several_defects_the_first_must_be_reported(client: _Client) -> None:
    target = f"{_URL}/ingest/batch"
    bad = {"documents": [document("/a", b""), document("b", b""), document("c/", b"")]}
    [option] = client.predict("POST", target, bad).options
    assert option.detail == ("documents[0]",)
    without_reader = _Client(Providers(reader=False)).predict("POST", f"{_URL}/ask", {})
    assert [option.status for option in without_reader.options] == [400]
    ops = {"ops": [{"type": "delete", "path": "none"}] * 1_025}
    too_many = client.predict("POST", f"{_URL}/documents/batch-ops", ops)
    assert [option.status for option in too_many.options] == [413]
    large = client.predict("PUT", f"{_URL}/documents?path=..", b"x" * (16 * 2**20 + 1))
    assert [option.status for option in large.options] == [400, 413]


@pytest.mark.parametrize("description", [None, "", "Birds"])
def test_an_empty_description_is_a_description(description: str | None) -> None:
    oracle = _Client().oracle
    body = {"brainId": "c", "description": description}
    created = oracle.predict("POST", "/v1/brains", body, {})
    assert created is not None
    said = created.options[0].body["description"]
    assert said == (Omittable(None) if description is None else description)


def test_a_batch_of_ops_is_applied_in_order_or_not_at_all(client: _Client) -> None:
    ops = [
        {"type": "rename", "path": "a.md", "to": "d/a.md"},
        {"type": "delete", "path": "raw/b.md"},
        {"type": "write", "path": "raw", "content_base64": "eA=="},
    ]
    refused = client.predict(
        "POST", f"{_URL}/documents/batch-ops", {"ops": [*ops, {"type": "delete", "path": "a.md"}]}
    ).options[0]
    assert (refused.status, refused.detail) == (404, ("ops[3]",))
    assert client.send("POST", "/documents/batch-ops", {"ops": ops, "reason": "r"})[0] == 200
    brain = client.oracle.brain("b")
    assert brain is not None
    changes = [(c.kind, c.path, c.old_path, c.reason) for c in brain.documents.changes[-3:]]
    assert changes == [
        ("renamed", "d/a.md", "a.md", "r"), ("deleted", "raw/b.md", None, "r"),
        ("created", "raw", None, "r"),
    ]  # fmt: skip


def test_attributes_stay_through_changes_of_the_bytes(client: _Client) -> None:
    client.send("PUT", "/documents?path=raw/b.md", b"heron")
    client.send("POST", "/documents/append?path=raw/b.md", b" heron")
    client.send("POST", "/documents/rename", {"from": "raw/b.md", "to": "e.md"})
    assert client.found(filters={"tags": ["red"]}) == ["e.md"]
    client.send("DELETE", "/documents?path=e.md")
    client.send("PUT", "/documents?path=e.md", b"heron")
    assert client.found(filters={"tags": ["red"]}) == []


def test_listings(client: _Client) -> None:
    def names(query: str) -> list[str]:
        return [i["path"] for i in client.send("GET", f"/documents{query}")[1]["items"]]

    assert names("") == ["a.md", "c.bin", "raw"]
    assert names("?include_generated=true") == ["_h.md", "a.md", "c.bin", "raw"]
    assert names("?recursive=true&glob=*.md") == ["a.md", "raw/b.md"]
    assert names("?dir=raw&glob=?.md") == ["raw/b.md"]
    assert names("?dir=x") == []


def test_a_deleted_brain_is_unknown_and_a_new_one_empty(client: _Client) -> None:
    assert client.send("DELETE", "")[0] == 428
    assert client.send("DELETE", "", **{"X-Confirm-Delete": "yes"})[0] == 204
    assert client.send("GET", "")[0] == 404
    created = client.predict("POST", "/v1/brains", {"brainId": "b"}).options[0]
    created.apply()
    assert (created.status, client.found()) == (201, [])
    again = client.predict("POST", "/v1/brains", {"brainId": "b"}).options[0]
    assert again.status == 409


def test_every_route_of_a_brain_is_modelled(client: _Client) -> None:
    for route in ROUTES:
        if "{brainId}" in route.path and route.name != "events":
            target = route.path.replace("{brainId}", "b")
            statuses = {o.status for o in client.predict(route.method.upper(), target).options}
            assert not statuses & {404, 405}
