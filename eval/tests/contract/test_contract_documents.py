"""CONTRACT.md, openapi.yaml, events.schema.json and the models agree."""

import importlib.util
import math
import re
import sqlite3
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from memconform.conformance.case_runner import check_ids
from memconform.conformance.case_schema import case_schema
from memconform.conformance.catalog import CaseVariant, catalog
from memconform.conformance.clients.catalog import ClientVariant, client_catalog
from memconform.conformance.coverage import uncovered_rules
from memconform.conformance.names import CASES
from memconform.conformance.rules import rules
from memconform.contract.ask import EVENTS
from memconform.contract.events import Change
from memconform.contract.problem import STATUS
from memconform.contract.schemas import ROUTES, events_schema, openapi

_CHECKOUT = Path(__file__).parents[3]
_TEXT = (_CHECKOUT / "sdks" / "CONTRACT.md").read_text(encoding="utf-8")
_RULE = re.compile(r"^- \*\*([a-z0-9.-]+)\*\* \((MUST|SHOULD)\) ", re.MULTILINE)


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("schemas", _CHECKOUT / "scripts" / "schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_match_the_models() -> None:
    for path, text in _script().rendered().items():
        assert path.read_text(encoding="utf-8") == text, f"run scripts/schemas.py: {path.name}"


def test_openapi_is_valid() -> None:
    validate(openapi())
    Draft202012Validator.check_schema(events_schema())


def test_an_invalid_openapi_document_is_detected() -> None:
    document = openapi()
    del document["info"]
    with pytest.raises(OpenAPIValidationError, match="info"):
        validate(document)


def test_rule_ids_are_unique() -> None:
    ids = [rule for rule, _ in _RULE.findall(_TEXT)]
    assert len(ids) == len(set(ids))
    assert len(ids) == _TEXT.count("(MUST)") + _TEXT.count("(SHOULD)") == 183


def test_nothing_binds_outside_a_rule() -> None:
    items = re.split(r"\n(?=- |\n)", _TEXT[_TEXT.index("\n## wire") :])
    loose = [item for item in items if re.search(r"\b(MUST|SHOULD)\b", item)]
    assert [item for item in loose if not _RULE.search(item)] == []


def test_routes_match_the_document() -> None:
    named = set(re.findall(r"\| `(GET|HEAD|POST|PUT|DELETE) ((?:/|…)[^`\s?]*)", _TEXT))
    named |= set(re.findall(r"^`(GET|POST) (…[^`\s]*)", _TEXT, re.MULTILINE))
    brain = "/v1/brains/{brainId}"
    written = {(method, path.replace("…", brain)) for method, path in named}
    assert written == {(route.method.upper(), route.path) for route in ROUTES}


def test_an_optional_key_of_a_request_may_be_null() -> None:
    schemas = openapi()["components"]["schemas"]
    for name in ("SearchRequest", "AskRequest", "IngestFile", "Filters", "Tuning"):
        schema = {**schemas[name], "components": {"schemas": schemas}}
        values = {
            "query": "x",
            "question": "x",
            "path": "a",
            "contentType": "",
            "contentBase64": "",
        }
        body = {key: value for key, value in values.items() if key in schema["properties"]}
        optional = schema["properties"].keys() - schema.get("required", [])
        assert optional
        validator = Draft202012Validator(schema)
        validator.validate(body | dict.fromkeys(optional))
        for key in schema.get("required", []):
            assert not validator.is_valid(body | {key: None})


def test_codes_match_the_table() -> None:
    table = re.findall(r"`([a-z_]+)` \| (\d{3})", _TEXT)
    assert {code: int(status) for code, status in table} == STATUS


def test_events_match_the_table() -> None:
    table = dict(re.findall(r"^\| `([a-z_]+)` \| `\{([^}]*)\}`", _TEXT, re.MULTILINE))
    written = {name: {key.strip() for key in keys.split(",")} for name, keys in table.items()}
    modelled = {
        name: {
            f"{field.alias or key}{'' if field.is_required() else '?'}"
            for key, field in model.model_fields.items()
        }
        for name, model in {**EVENTS, "change": Change}.items()
    }
    assert written == modelled


@pytest.mark.parametrize("sdk", ["py", "go", "ts"])
def test_each_variable_of_the_contract_can_reach_each_daemon(sdk: str) -> None:
    start = _TEXT.index("| variable | values |")
    table = _TEXT[start : _TEXT.index("\n\n", start)]
    # The harness sets the state folder and the token itself.
    variables = set(re.findall(r"`([A-Z][A-Z_]+)`", table)) - {"JB_HOME", "JB_AUTH_TOKEN"}
    manifest = (_CHECKOUT / "sdks" / sdk / "sdk.toml").read_text(encoding="utf-8")
    assert {name for name in variables if f'"{name}"' not in manifest} == set()


def test_openapi_yaml_is_plain_yaml() -> None:
    loaded = yaml.safe_load((_CHECKOUT / "sdks" / "openapi.yaml").read_text(encoding="utf-8"))
    assert loaded == openapi()


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    entries: list[CaseVariant | ClientVariant] = [*catalog(), *client_catalog()]
    assert uncovered_rules(entries) == []
    assert {rule for entry in entries for rule in entry.case.rules} == set(rules())
    assert set(rules()) == {rule for rule, _ in _RULE.findall(_TEXT)}


def test_a_rule_without_a_case_is_detected() -> None:
    entries: list[CaseVariant | ClientVariant] = [*catalog(), *client_catalog()]
    without = [entry for entry in entries if "ask.flush" not in entry.case.rules]
    assert uncovered_rules(without) == ["ask.flush"]


def test_a_case_has_the_level_of_its_first_rule() -> None:
    assert [e.id for e in catalog() if e.case.level != rules()[e.case.rules[0]].level] == []


def test_there_are_at_least_150_cases() -> None:
    assert len({entry.base for entry in catalog()}) >= 150


def test_cases_match_their_schema() -> None:
    validator = Draft202012Validator(case_schema())
    for path in sorted(CASES.glob("*.yaml")):
        validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    misspelt = [{"id": "x", "title": "x", "rules": ["core.health"], "stpes": [], "steps": []}]
    assert not validator.is_valid(misspelt)


def test_documents_state_the_current_numbers() -> None:
    entries = catalog()
    checks = sum(len(check_ids(entry)) for entry in entries)
    cases = len({entry.base for entry in entries})
    readme = (_CHECKOUT / "README.md").read_text(encoding="utf-8")
    conformance = (_CHECKOUT / "docs" / "CONFORMANCE.md").read_text(encoding="utf-8")
    assert (
        f"py: {checks} of {checks} checks pass in {len(entries)} case variants: conformant\n"
        in conformance
    )
    changelog = (_CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    for document in (readme, conformance, changelog):
        assert f"{cases} cases in {len(entries):,} variants" in document


def test_the_formula_of_bm25_is_that_of_sqlite() -> None:
    """core.rank.bm25 states it for daemons without SQLite; a term of most chunks has 1e-6."""
    chunks = ["heron heron kettle", "heron", "mule heron lamp boat", "kettle kettle"]
    terms = ["heron", "kettle", "kettle", "boat"]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
    database.executemany("INSERT INTO t VALUES (?)", [(chunk,) for chunk in chunks])
    query = " OR ".join(f'"{term}"' for term in terms)
    rows = database.execute("SELECT x, -bm25(t) FROM t WHERE t MATCH ?", (query,))
    scores = dict(rows.fetchall())
    database.close()
    mean = sum(len(chunk.split()) for chunk in chunks) / len(chunks)
    for chunk in chunks:
        score = 0.0
        for term in terms:
            n = sum(term in other.split() for other in chunks)
            idf = math.log((len(chunks) - n + 0.5) / (n + 0.5))
            f, d = chunk.split().count(term), len(chunk.split())
            score += (idf if idf > 0 else 1e-6) * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * d / mean))
        assert scores[chunk] == pytest.approx(score, rel=1e-12)
