"""The cases that put sdks/vectors on the wire are generated, and leave out no entry."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

_CHECKOUT = Path(__file__).parents[3]


def _load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = _CHECKOUT / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(_CHECKOUT / "scripts"))
    return _load("vector_cases", monkeypatch)


def test_the_tokens_are_those_of_fts5(monkeypatch: pytest.MonkeyPatch) -> None:
    """No daemon has a database; the tables of its tokenizer and these vectors stand for it."""
    tokenizer = _load("tokenizer", monkeypatch)
    cases = json.loads(tokenizer.VECTORS.read_text(encoding="utf-8"))["cases"]
    assert [case["tokens"] for case in cases] == tokenizer.tokens([case["text"] for case in cases])
    [lines] = {path.read_text(encoding="utf-8") for path in tokenizer.TABLES}
    assert [case["text"] for case in cases] == tokenizer.texts(lines)


def test_the_case_file_is_that_of_the_vectors(script: ModuleType) -> None:
    written: str = script.TARGET.read_text(encoding="utf-8")
    assert written == script.render(), "run scripts/vector_cases.py"


def test_each_entry_is_in_a_case(script: ModuleType) -> None:
    variants = {
        case["id"]: len(case["matrix"]["v"])
        for cases in (
            script.front_matter(),
            script.term_cases(),
            script.chunking(),
            script.dates(),
            script.fusion(),
            script.reader(),
            script.prompts(),
        )
        for case in cases
        if "matrix" in case
    }

    def entries(name: str, key: str = "cases") -> int:
        return len(script.vectors(name)[key])

    assert variants["vector-front-matter-chunks"] == entries("frontmatter")
    # The empty text is no query.
    assert variants["vector-terms"] + variants["vector-terms-none"] == entries("terms") - 1
    assert variants["vector-chunk-count"] == entries("chunking")
    assert variants["vector-chunk-text"] == entries("chunking") - 1
    assert variants["vector-dates"] + variants["vector-dates-bad"] == entries("dates", "moments")
    assert variants["vector-dates-age"] == entries("dates", "moments")
    assert variants["vector-dates-scores"] == entries("dates")
    assert variants["vector-rounding"] == entries("fusion", "rounding")
    assert variants["vector-kernel"] == entries("fusion", "kernel")
    # Two have a chunk without a vector, which no daemon ranks.
    assert variants["vector-fusion"] + variants["vector-fusion-none"] == entries("fusion") - 2
    assert variants["vector-reader"] + variants["vector-reader-far"] == entries("reader")
    assert variants["vector-prompt"] == entries("prompt")
    citations = variants["vector-citations"] + variants["vector-citations-empty"]
    assert citations == entries("prompt", "citations")
    replies = variants["vector-rerank-reply"] + variants["vector-rerank-reply-bad"]
    assert replies == entries("prompt", "replies")


def test_components_of_each_vector_are_probed(script: ModuleType) -> None:
    [case] = script.hash_cases()
    probed = {value["text"] for value in case["matrix"]["v"].values()}
    assert {entry["text"] for entry in script.vectors("hash")["cases"] if entry["values"]} <= probed


def test_no_vector_file_is_forgotten(script: ModuleType) -> None:
    names = {path.stem for path in (_CHECKOUT / "sdks" / "vectors").glob("*.json")}
    assert names == {
        "chunking", "conversation", "dates", "frontmatter", "fusion", "hash", "prompt", "reader",
        "terms", "tokens",
    }  # fmt: skip
    for name in names:
        assert json.dumps(script.vectors(name))
