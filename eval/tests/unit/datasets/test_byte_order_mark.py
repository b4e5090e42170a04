"""Files that an editor began with a UTF-8 byte order mark are read as without it."""

import codecs
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.retrieval_log import read_log
from memconform.cli.upstream.command import _read as read_upstream_script
from memconform.conformance.strict_yaml import load_yaml
from memconform.daemons.discovery import known_sdks
from memconform.daemons.manifest import load_manifest
from memconform.datasets.answer_keys import read_answer_key
from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.errata import read_errata
from memconform.datasets.files import PieceReader, line_at
from memconform.datasets.hypotheses import read_hypotheses, read_label_log
from memconform.datasets.jsonl import open_jsonl
from memconform.datasets.registry import shipped_folder
from memconform.datasets.sources import load_sources
from memconform.errors import UsageError
from memconform.llm.prices import Prices
from memconform.longmemeval.keys import read_keys
from memconform.longmemeval.pruning import read_events, read_ranges
from memconform.scoring.judge.calibration_set import read_items
from memconform.scoring.judge.official_prompts import read_official_prompts
from tests.conftest import CHECKOUT

_HYPOTHESIS = {"question_id": "q", "hypothesis": "x"}
_LABEL = {**_HYPOTHESIS, "autoeval_label": {"model": "m", "label": True}}
_RANKING = {"question_id": "q", "retrieval_results": {"ranked_items": [{"corpus_id": "s"}]}}
_MEMINI = {"items": [{"id": "i", "content": "x"}], "questions": [{"query": "y", "gold": ["i"]}]}
_LOCOMO = [
    {
        "sample_id": "c",
        "conversation": {
            "session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "Hello"}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [{"question": "Who?", "answer": "A", "evidence": ["D1:1"], "category": 4}],
    }
]
_SCRIPT = """
def get_anscheck_prompt(task, question, answer, response, abstention=False):
    if not abstention:
        if task in ['single-session-user']:
            template = "{} {} {}"
            prompt = template.format(question, answer, response)
    else:
        template = "{} {} {} unanswerable"
        prompt = template.format(question, answer, response)
    return prompt
"""
_MANIFEST = (CHECKOUT / "sdks" / "py" / "sdk.toml").read_text(encoding="utf-8")
_PRICES = 'as_of = "2026-01-31"\n[models."openai:x"]\ninput = 1\noutput = 2\n'


def _items_of(path: Path) -> Any:
    return [haystack.items for haystack in open_benchmark(path, None, {})]


def _questions_of(path: Path) -> Any:
    return list(open_jsonl(path, "mine"))


def _ids_of(path: Path) -> Any:
    key = read_answer_key(path, "locomo")
    return list(key.questions)


_READERS: list[tuple[Callable[[Path], Any], str, str]] = [
    (lambda p: read_hypotheses(p).answers, "h.jsonl", json.dumps(_HYPOTHESIS)),
    (lambda p: read_hypotheses(p).answers, "h.json", json.dumps([_HYPOTHESIS])),
    (lambda p: read_label_log(p).labels, "log.jsonl", json.dumps(_LABEL)),
    (lambda p: dict(read_log(p).rankings), "log", json.dumps(_RANKING)),
    (_items_of, "memini.json", json.dumps(_MEMINI)),
    (_items_of, "locomo.json", json.dumps(_LOCOMO)),
    (_ids_of, "locomo.json", json.dumps(_LOCOMO)),
    (_questions_of, "set.jsonl", json.dumps({"id": "q", "question": "What?"})),
    (lambda p: dict(read_errata(p).entries), "errata.json", '{"q": "why"}'),
    (lambda p: dict(read_keys(p).texts), "keys.json", '{"i": "key"}'),
    (lambda p: dict(read_events(p).days), "events.json", '{"i": []}'),
    (read_ranges, "ranges.json", '{"q": {"start": "2023-05-01", "end": "2023-05-02"}}'),
    (load_yaml, "cases.yaml", "a: [1]\n"),
    (lambda p: list(known_sdks(p.parent)), "memconform.toml", '[sdks]\nmine = "x/sdk.toml"\n'),
    (lambda p: read_upstream_script(p).model_dump(), "script.json", '{"rules": []}'),
    (load_manifest, "sdk.toml", _MANIFEST),
    (lambda p: Prices.load(p).as_of, "prices.toml", _PRICES),
    (read_official_prompts, "evaluate_qa.py", _SCRIPT),
]


@pytest.mark.parametrize(("read", "name", "content"), _READERS)
def test_a_file_with_the_mark_is_read_as_without(
    tmp_path: Path, read: Callable[[Path], Any], name: str, content: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    plain = read(path)
    assert plain
    path.write_bytes(codecs.BOM_UTF8 + content.encode())
    assert read(path) == plain


def test_shipped_tables_are_read_with_the_mark(tmp_path: Path) -> None:
    for name in ("sources.toml", "judge-calibration.jsonl"):
        [shipped] = shipped_folder().rglob(name)
        (tmp_path / name).write_bytes(codecs.BOM_UTF8 + shipped.read_bytes())
    assert load_sources(tmp_path / "sources.toml") == load_sources(None)
    assert read_items(tmp_path / "judge-calibration.jsonl")[0]


def test_a_compressed_file_may_begin_with_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl.gz"
    path.write_bytes(gzip.compress(codecs.BOM_UTF8 + json.dumps(_HYPOTHESIS).encode()))
    assert read_hypotheses(path).answers == {"q": "x"}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 1 << 20])
@pytest.mark.parametrize("content", [b"", b"\n", b"ab\ncd\n", codecs.BOM_UTF8 + b"a"])
def test_only_one_mark_is_skipped_whatever_is_read_at_once(
    tmp_path: Path, size: int, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(codecs.BOM_UTF8 + content)
    with PieceReader(path) as source:
        assert b"".join(iter(lambda: source.read(size), b"")) == content
        assert source.size == len(content) + 3


def test_the_line_of_a_fault_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(codecs.BOM_UTF8 + b'[\n{"question_id": "q", "hypothesis": "x"},\n\n{]\n]')
    with pytest.raises(UsageError, match="line 4"):
        read_hypotheses(path)
    assert [line_at(path, byte) for byte in (3, 4, 5)] == [1, 1, 2]
