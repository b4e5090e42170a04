"""A dialect translates names; what it does not declare stays a violation."""

import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from memconform.bench.raw_http import serving
from memconform.client.ask_stream import AskStream
from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError, DaemonFailedError
from memconform.client.messages import read_message
from memconform.contract.ask import AskRequest
from memconform.contract.core import Brain, Chunk, Filters, SearchRequest, SearchResponse, Tuning
from memconform.contract.dialect import Dialect, Operation
from memconform.contract.dialect_keys import DialectError
from memconform.contract.dialect_objects import OBJECTS, loosened
from memconform.contract.dialect_tables import PathMapping
from memconform.contract.documents import Listing
from memconform.contract.missing_keys import gaps
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import Mode, is_unknowable
from memconform.daemons.dialects import load_dialect, shipped_dialects
from memconform.daemons.manifest import load_manifest
from memconform.errors import UsageError
from tests.fakes.foreign import DIALECT, ForeignDaemon
from tests.fakes.scripted import ScriptedBrain

_FOREIGN = Dialect.model_validate(DIALECT)
_TRACE = {
    "requestedMode": "bm25",
    "effectiveMode": "bm25",
    "embedderUsed": False,
    "reranked": False,
    "fellBackToBm25": False,
    "candidateK": 5,
    "searchMs": 1.5,
}
_CHUNK = {"chunkId": "a#0", "documentId": "a", "path": "a", "score": 1.0, "text": "x"}
_RESPONSE = {"chunks": [_CHUNK], "tookMs": 2.0, "trace": _TRACE}


@asynccontextmanager
async def _client(
    daemon: ForeignDaemon | None = None, dialect: Dialect = _FOREIGN
) -> AsyncIterator[ContractClient]:
    async with (
        serving((daemon or ForeignDaemon()).answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}", dialect=dialect) as client,
    ):
        await client.create_brain("b", "about it")
        for path, text in (("n/one.md", "the red kite"), ("n/two.md", "the blue boat")):
            await client.put_document("b", path, text.encode())
        yield client


async def test_every_call_is_translated() -> None:
    async with _client() as client:
        assert await client.version() is None
        brain = await client.brain("b")
        assert (brain.documents, brain.chunks, brain.pending) == (2, None, None)
        assert await client.list_documents("b") == ["n/one.md", "n/two.md"]
        request = SearchRequest(query="the red kite", mode=Mode.BM25)
        answer, _ = await client.search("b", request)
        assert [chunk.path for chunk in answer.chunks] == ["n/one.md", "n/two.md"]
        assert answer.trace.effective_mode is Mode.BM25
        assert answer.trace.search_ms is None
        filtered = request.model_copy(update={"filters": Filters(paths=["n/two.md"])})
        answer, _ = await client.search("b", filtered)
        assert [chunk.path for chunk in answer.chunks] == ["n/two.md"]
        result, timings = await client.ask("b", AskRequest(question="red kite"))
        assert result.text == "the red kite"
        assert result.citations[0].path == "n/one.md"
        assert result.retrieve.mode is None
        assert timings.first_delta_ms is not None
        assert await client.delete_brain("b")
        assert not await client.delete_brain("b")


class _Faulty(ForeignDaemon):
    """Spoils what it says of a search."""

    def __init__(self, hits: Any = None, trace: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._hits, self.says = hits, trace

    def hits(self, store: ScriptedBrain, body: dict[str, Any]) -> Any:
        good = super().hits(store, body)
        return self._hits(good) if self._hits is not None else good

    def trace(self, body: dict[str, Any]) -> dict[str, Any]:
        return super().trace(body) if self.says is None else self.says


@pytest.mark.parametrize(
    ("daemon", "says"),
    [
        (_Faulty(lambda _: "none"), "chunks: "),
        (_Faulty(lambda hits: [{**hits[0], "Path": None}]), "path"),
        (_Faulty(lambda hits: [{k: v for k, v in hits[0].items() if k != "Path"}]), "path"),
        (_Faulty(lambda hits: [{**hits[0], "Body": None}]), "text"),
        (_Faulty(lambda hits: [hits[0], hits[0]]), "twice"),
        (_Faulty(lambda hits: list(reversed(hits))), "rises"),
        (_Faulty(trace={"Served": None}), "effectiveMode"),
        (_Faulty(trace={"Served": "magic"}), "effectiveMode"),
        (_Faulty(trace={}), "effectiveMode: the key is missing"),
    ],
)
async def test_a_dialect_excuses_no_fault(daemon: ForeignDaemon, says: str) -> None:
    async with _client(daemon) as client:
        with pytest.raises(ContractViolatedError, match=says):
            await client.search("b", SearchRequest(query="red kite the"))


async def test_a_path_outside_the_mapping_is_returned_unchanged() -> None:
    """It is a document that was never ingested, and is reported as one."""
    daemon = _Faulty(lambda hits: [{**hits[0], "Path": "elsewhere/one.md"}])
    async with _client(daemon) as client:
        answer, _ = await client.search("b", SearchRequest(query="red"))
        assert answer.chunks[0].path == "elsewhere/one.md"


async def test_what_cannot_be_sent_is_an_error() -> None:
    objects = {**DIALECT["objects"]}
    objects["search_request"] = {**objects["search_request"], "tuning": False}
    dialect = Dialect.model_validate({**DIALECT, "objects": objects})
    async with _client(dialect=dialect) as client:
        request = SearchRequest(query="red", tuning=Tuning(alpha=0.5))
        with pytest.raises(DaemonFailedError, match=r"no key for search_request\.tuning") as caught:
            await client.search("b", request)
        assert caught.value.code == "not_in_dialect"


async def test_the_token_is_sent_in_the_way_of_the_dialect() -> None:
    dialect = Dialect.model_validate({**DIALECT, "auth": {"header": "X-Key", "value": "k={token}"}})
    client = ContractClient(
        "http://127.0.0.1:9", dialect=dialect, headers={"Authorization": "Bearer t0k"}
    )
    async with client:
        assert client._connection.headers["X-Key"] == "k=t0k"
        assert "authorization" not in client._connection.headers


# A document of its own for a property: paths that a corpus may have.
_PATH = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
_AFFIX = st.text("ab/._-", max_size=8)


@given(_AFFIX, _AFFIX, _PATH)
def test_every_path_survives_the_mapping(prefix: str, suffix: str, path: str) -> None:
    mapping = PathMapping(prefix=prefix, suffix=suffix)
    assert mapping.from_daemon(mapping.to_daemon(path)) == path
    assert mapping.folder_from_daemon(mapping.folder_to_daemon(path)) == path
    assert mapping.folder_from_daemon(mapping.folder_to_daemon("")) == ""


def test_a_folder_has_the_prefix_and_no_suffix() -> None:
    paths = {"prefix": "raw/documents/", "suffix": ".md"}
    dialect = Dialect.model_validate({"paths": paths})
    stat = {"size": 0, "mtime": "2026-01-01T00:00:00Z"}
    items = [
        {"path": "raw/documents/a", "is_dir": True, **stat},
        {"path": "raw/documents/a.md", "is_dir": True, **stat},
        {"path": "raw/documents/a.md", "is_dir": False, **stat},
        {"path": "elsewhere", "is_dir": True, **stat},
    ]
    listing = read_message(json.dumps({"items": items}).encode(), Listing, dialect)
    assert [item.path for item in listing.items] == ["a", "a.md", "a", "elsewhere"]


@given(st.sampled_from(["camel", "snake", "pascal", "any"]), st.sampled_from([str, str.upper]))
def test_a_response_reads_alike_in_every_style(style: str, case: Any) -> None:
    def styled(value: Any) -> Any:
        if isinstance(value, list):
            return [styled(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {spell(key): styled(inner) for key, inner in value.items()}

    def spell(key: str) -> str:
        if style == "camel":
            return key
        if style == "pascal":
            return "".join(word.capitalize() for word in to_snake(key).split("_"))
        return case(to_snake(key)) if style == "any" else to_snake(key)

    text = json.dumps(styled(_RESPONSE))
    read = read_message(text.encode(), SearchResponse, Dialect.model_validate({"keys": style}))
    assert (
        read.model_dump() == SearchResponse.model_validate_json(json.dumps(_RESPONSE)).model_dump()
    )


def test_two_spellings_of_a_key_are_ambiguous() -> None:
    dialect = Dialect.model_validate({"keys": "any"})
    with pytest.raises(DialectError, match="both spell brainId"):
        read_message(b'{"brain_id": "a", "BrainID": "b"}', Brain, dialect)


@pytest.mark.parametrize("model", [Brain, SearchResponse, Chunk])
def test_without_a_dialect_nothing_may_be_unknown(model: Any) -> None:
    for name, field in model.model_fields.items():
        if is_unknowable(field):
            whole = {"brainId": "b", "documents": 1, "chunks": 1, "vectors": 0, "pending": 0}
            whole |= {**_RESPONSE, **_CHUNK}
            key = field.alias or name
            for spoilt in ({k: v for k, v in whole.items() if k != key}, whole | {key: None}):
                with pytest.raises(ValidationError):
                    model.model_validate_json(json.dumps(spoilt))
            assert getattr(loosened(model), "model_fields")[name].default is None  # noqa: B009


def test_a_declared_gap_is_unknown_and_a_null_is_not() -> None:
    dialect = Dialect.model_validate({"objects": {"brain": {"documents": "documents?"}}})
    rest = '"brainId": "b", "chunks": 1, "vectors": 0, "pending": 0'
    assert read_message(f"{{{rest}}}".encode(), Brain, dialect).documents is None
    with pytest.raises(ValidationError, match="documents"):
        read_message(f'{{{rest}, "documents": null}}'.encode(), Brain, dialect)
    with pytest.raises(DialectError, match="chunks: the key is missing"):
        read_message(b'{"brainId": "b", "vectors": 0, "pending": 0}', Brain, dialect)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"routes": {"search": False}}, "a daemon needs this route"),
        ({"routes": {"search": "search"}}, "METHOD /path"),
        ({"routes": {"serach": False}}, "serach"),
        (
            {"routes": {"search": "POST /stores/{brian}/query"}},
            "routes.search: unknown placeholder {brian}; did you mean {brain}?",
        ),
        ({"routes": {"search": "POST /{brainId}"}}, "{brainId}; did you mean {brain}?"),
        ({"routes": {"search": "POST /{id}"}}, "{id}; known are {brain}"),
        ({"objects": {"chunks": {}}}, "unknown object"),
        ({"objects": {"chunk": {"txt": "t"}}}, "unknown key"),
        ({"objects": {"chunk": {"text": False}}}, "cannot be unknown"),
        ({"objects": {"chunk": {"path": "p?"}}}, "cannot be unknown"),
        ({"objects": {"search_response": {"chunks": False}}}, "cannot be unknown"),
        ({"auth": {"value": "Bearer"}}, "token"),
        ({"no_such_key": 1}, "no_such_key"),
    ],
)
def test_an_impossible_dialect_is_refused(table: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Dialect.model_validate(table)


def test_the_operations_are_the_routes_of_the_contract() -> None:
    assert set(get_args(Operation)) == {to_snake(route.name) for route in ROUTES}


def test_an_object_that_a_dialect_can_name_is_a_schema() -> None:
    assert OBJECTS["search_response"] is SearchResponse
    assert {"trace", "retrieve", "ask_request", "ingested", "stream_error"} <= OBJECTS.keys()


@pytest.mark.parametrize("name", shipped_dialects())
def test_a_shipped_dialect_is_valid(name: str) -> None:
    assert Dialect.model_validate(load_dialect(name)).name == name


def test_a_dialect_may_be_based_on_a_shipped_one() -> None:
    table = tomllib.loads('like = "jeffs-brain"\ncounts = "brain"\nobjects.trace.searchMs = false')
    dialect = Dialect.model_validate(load_dialect(table))
    assert dialect.counts == "brain"
    assert dialect.objects["trace"]["searchMs"] is False
    assert dialect.objects["trace"]["effectiveMode"] == ["effectiveMode", "mode"]


def _sdk(folder: Path, dialect: str) -> Path:
    path = folder / "sdk.toml"
    path.write_text(
        f'name = "x"\nlanguage = "any"\n{dialect}\n[serve]\nargv = ["x"]\n'
        '[capabilities]\nprofiles = ["core"]\nmodes = ["auto"]\n'
    )
    return path


@pytest.mark.parametrize(
    ("dialect", "says"),
    [
        ('dialect = "jefs-brain"', "did you mean 'jeffs-brain'"),
        ('dialect = {class = "nowhere:Class"}', "nowhere"),
        ('dialect = {class = "json:loads"}', "is not a subclass"),
        ('dialect = {keys = "kebab"}', "keys"),
    ],
)
def test_a_faulty_dialect_is_named_with_its_file(tmp_path: Path, dialect: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_manifest(_sdk(tmp_path, dialect))
    assert "sdk.toml" in caught.value.message
    assert says in caught.value.excerpt


def test_a_class_says_what_data_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "percents.py").write_text(
        "from memconform.contract.dialect import Dialect\n"
        "class Percent(Dialect):\n"
        "    def translate(self, value, model, **options):\n"
        "        result = super().translate(value, model, **options)\n"
        "        if isinstance(result, dict) and 'score' in result:\n"
        "            result['score'] = float(result['score'].rstrip(' %')) / 100\n"
        "        return result\n"
    )
    monkeypatch.chdir(tmp_path)
    dialect = load_manifest(_sdk(tmp_path, 'dialect = {class = "percents:Percent"}')).dialect
    assert dialect is not None
    text = json.dumps({**_RESPONSE, "chunks": [{**_CHUNK, "score": "87 %"}]})
    answer = read_message(text.encode(), SearchResponse, dialect)
    assert answer.chunks[0].score == pytest.approx(0.87)


def test_gaps_name_the_line_that_would_help() -> None:
    text = '{"chunks": [{"chunk_id": "a", "doc": "d", "path": "p", "score": 1}], "trace": {}}'
    lines = [gap.line() for gap in gaps(text, SearchResponse, None)]
    assert '[dialect] keys = "any"' in lines
    assert '[dialect.objects.chunk] text = "KEY"   # or one of its keys: chunk_id, doc' in lines
    assert "[dialect.objects.trace] searchMs = false" in lines
    assert "[dialect.objects.search_response] tookMs = false" in lines
    assert gaps('{"chunks": null, "tookMs": 1}', SearchResponse, _all_unknown()) == []


def test_gaps_propose_nested_places_of_the_right_kind() -> None:
    body = {"Result": {"Hits": [], "Took": 1, "a.b": []}, "Debug": {"Served": "bm25"}, "More": {}}
    lines = [gap.line() for gap in gaps(json.dumps(body), SearchResponse, None)]
    search = "[dialect.objects.search_response]"
    assert sorted(lines) == [
        f'{search} chunks = "KEY"   # or one of its keys: Result.Hits',
        f"{search} tookMs = false   # or one of its keys: Result.Took, Debug.Served",
        f"{search} trace = false   # or one of its keys: Result, Debug, More",
    ]


def _all_unknown() -> Dialect:
    return Dialect.model_validate({"objects": {"search_response": {"trace": False}}})


async def test_an_error_of_the_wire_names_the_daemons_own_route() -> None:
    async with _client() as client:
        await client.delete_brain("b")
        with pytest.raises(CallError, match="POST /stores/b/query: 404"):
            await client.search("b", SearchRequest(query="red"))


async def test_a_trace_that_comes_and_goes_is_no_measurement() -> None:
    """A failed retrieval, answered without its trace, was scored under the mode that was asked."""
    daemon = _Faulty()
    async with _client(daemon) as client:
        request = SearchRequest(query="red", mode=Mode.BM25)
        await client.search("b", request)
        daemon.says = {}
        with pytest.raises(ContractViolatedError, match="effectiveMode: the key is missing"):
            await client.search("b", request)
        objects = {**DIALECT["objects"], "trace": {**DIALECT["objects"]["trace"]}}
        objects["trace"]["effectiveMode"] = "Served?"
        client.dialect = Dialect.model_validate({**DIALECT, "objects": objects})
        with pytest.raises(ContractViolatedError, match="no trace confirms") as caught:
            await client.search("b", request)
        assert caught.value.code == "no_trace"


async def test_only_documents_of_the_mapping_are_listed() -> None:
    """A prefix that is no folder was listed as one, and other files were counted."""
    dialect = Dialect.model_validate({**DIALECT, "paths": {"prefix": "kb/mc-", "suffix": ".txt"}})
    async with _client(dialect=dialect) as client:
        other = Dialect.model_validate({**DIALECT, "paths": {}})
        client.dialect = other
        await client.put_document("b", "kb/other.json", b"{}")
        await client.put_document("b", "elsewhere/mc-x.txt", b"x")
        client.dialect = dialect
        assert await client.list_documents("b") == ["n/one.md", "n/two.md"]
        assert (await client.brain("b")).documents == 2


@pytest.mark.parametrize(
    "table",
    [
        {"events": {"done": "error"}},
        {"objects": {"search_request": {"query": "q", "topK": "q.k"}}},
        {"objects": {"search_request": {"query": "topK"}}},
        {"objects": {"chunk": {"text": ""}}},
        {"objects": {"chunk": {"text": "a..b"}}},
        {"choices": [{"cause": "*", "reason": "all"}]},
        {"choices": [{"cause": "POST *", "reason": "all"}]},
        {"choices": [{"cause": "*: status 5??, expected *", "reason": "crashes"}]},
    ],
)
def test_a_dialect_that_would_hide_a_defect_or_garble_a_request_is_refused(
    table: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        Dialect.model_validate(table)


async def test_an_error_inside_a_success_is_no_empty_ranking() -> None:
    """A search that failed with status 200 was scored as one that found nothing."""
    with pytest.raises(DialectError, match="query_syntax") as caught:
        read_message(
            b'{"Result": {"Hits": []}, "Error": {"kind": "query_syntax"}}', SearchResponse, _FOREIGN
        )
    assert caught.value.code == "reported_error"
    for nothing in ("null", "false", '""', "[]"):
        text = f'{{"Result": {{"Hits": []}}, "Debug": {{"Served": "bm25"}}, "error": {nothing}}}'
        assert read_message(text.encode(), SearchResponse, _FOREIGN).chunks == []


def test_an_event_that_the_dialect_does_not_name_is_a_violation() -> None:
    """An error under a name of its own left half an answer that looked whole."""
    request = AskRequest(question="red")
    with pytest.raises(ContractViolatedError, match="'trouble' is no event of the dialect"):
        AskStream(request, dialect=_FOREIGN).feed("trouble", "{}")
    quiet = Dialect.model_validate({**DIALECT, "ignored_events": ["trouble"]})
    AskStream(request, dialect=quiet).feed("trouble", "{}")
    with pytest.raises(DaemonFailedError) as caught:
        AskStream(request, dialect=_FOREIGN).feed("end", '{"Ok": true, "Error": "cut"}')
    assert caught.value.code == "reported_error"
