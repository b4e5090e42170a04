"""Files of questions whose gold is disputed or wrong."""

import gzip
import json
from pathlib import Path

import pytest

from memconform.datasets.benchmarks import formats
from memconform.datasets.errata import (
    Errata,
    Erratum,
    read_errata,
    require_known_ids,
    shipped_errata,
    shipped_errata_names,
)
from memconform.datasets.registry import shipped_folder
from memconform.datasets.sources import known_sources
from memconform.errors import UsageError


def test_errata_say_why_by_id(tmp_path: Path) -> None:
    content = '{"conv-1#12": "the turn says June"}'
    plain, packed = tmp_path / "e.json", tmp_path / "e.json.gz"
    plain.write_text(content)
    packed.write_bytes(gzip.compress(content.encode()))
    for path in (plain, packed):
        assert read_errata(path).entries == {"conv-1#12": Erratum("the turn says June")}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'["conv-1#12"]', "is not a JSON object"),
        (b"{}", "names no question"),
        (b'{"questions": {}}', "names no question"),
        (b'{"conv-1#12": ""}', "'conv-1#12' has no reason"),
        (b'{"conv-1#12": null}', "'conv-1#12' has no reason"),
        (b'{"a": {"reason": " "}}', "'a' has no reason"),
        (b'{"a": {"reason": "r", "disputes": true}}', "unknown key 'disputes'"),
        (b'{"a": {"reason": "r", "disputed": "yes"}}', "must be true or false"),
        (b'{"a": {"reason": "r", "gold": "D1:1"}}', "'gold' must be a list of texts"),
        (b'{"a": {"reason": "r", "gold": []}}', "'gold' is empty"),
        (b'{"a": {"reason": "r", "gold": ["x", "x"]}}', "names an id twice"),
        (b'{"a": {"reason": "r", "gold": ["x"], "disputed": true}}', "both disputed and corrected"),
        (b'{"questions": {"a": "x"}, "reasons": {"y": "why"}}', "an undefined reason 'x'"),
        (
            b'{"questions": {"a": {"reason": "x", "source": "s"}}, "sources": {}}',
            "an undefined source 's'",
        ),
        (b'{"questions": {}, "entries": {}}', "the document has an unknown key 'entries'"),
        (b'{"questions": {}, "sources": ["x"]}', "must be an object"),
        (b'{"a": "x", "a": "y"}', "the key 'a' occurs twice in one object, line 1"),
        (b'{"a": "x"', "line 1"),
        (b'{"a": "\\ud800"}', "contains an unpaired surrogate"),
        (b'{"a": "\xff"}', "is not UTF-8, at byte 7"),
        (b"[" * 100_000, "nests too deeply"),
    ],
)
def test_invalid_errata_are_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=why) as error:
        read_errata(path)
    assert str(path) in error.value.message


def test_missing_errata_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json"):
        read_errata(tmp_path / "none.json")


def test_an_erratum_disputes_a_question_or_corrects_its_gold(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_text(
        '{"about": "b", "sources": {"s": "https://x"}, "reasons": {"r": "why"}, "questions": {'
        '"d": {"reason": "r", "disputed": true}, "c": {"reason": "r", "gold": ["D1:2", "D1:1"]},'
        ' "n": {"reason": "r", "see": ["D1:1"], "source": "s"}}}'
    )
    errata = read_errata(path)
    assert errata.disputed == {"d"}
    assert errata.corrected_gold == {"c": ("D1:2", "D1:1")}
    assert errata.entries["n"] == Erratum("r", disputed=False, see=("D1:1",), source="s")
    assert errata.of({"c"}).entries.keys() == {"c"}
    # A note changes no score, so it must not prevent a resume; a correction does.
    assert errata.digest() == errata.of({"d", "c"}).digest() != errata.of({"d"}).digest()


def test_errata_of_an_unknown_question_are_rejected() -> None:
    known = Errata("e.json", {"conv-1#0": Erratum("x")})
    require_known_ids(known, {"conv-1#0", "conv-1#1"})
    unknown = Errata("e.json", {"conv-1#0": Erratum("x"), "conv-1#11": Erratum("y")})
    with pytest.raises(UsageError, match="'conv-1#11'") as error:
        require_known_ids(unknown, {"conv-1#0", "conv-1#1"})
    assert "did you mean 'conv-1#1'?" in error.value.hint


def test_shipped_errata_may_describe_more_than_a_file_contains() -> None:
    shipped = Errata("locomo", {"conv-26#1": Erratum("x"), "conv-30#1": Erratum("y")}, shipped=True)
    require_known_ids(shipped, {"conv-26#1"})
    with pytest.raises(UsageError, match="'locomo' name no question of the benchmark"):
        require_known_ids(shipped, {"mine#1"})


@pytest.mark.parametrize("name", shipped_errata_names())
def test_shipped_errata_name_their_reasons_and_sources(name: str) -> None:
    errata = shipped_errata(name)
    document = json.loads((shipped_folder() / "errata" / f"{name}.json").read_text())
    assert document["format"] == name
    assert name in formats()
    assert errata.applies_to
    assert set(errata.applies_to) <= known_sources().keys()
    assert {known_sources()[source].format for source in errata.applies_to} == {name}
    assert errata.sources
    used = {entry.reason for entry in errata.entries.values()}
    assert used == document["reasons"].keys()
    # Reasons are classes in our words, so that no text of the data can be among them.
    assert all(len(entry.reason.split()) <= 3 for entry in errata.entries.values())


def test_the_counts_are_those_of_the_reports() -> None:
    locomo, longmemeval = shipped_errata("locomo"), shipped_errata("longmemeval")
    assert (len(locomo.disputed), len(locomo.corrected_gold)) == (99, 57)
    reported = {"370a8ff4", "gpt4_88806d6e", "9aaed6a3", "gpt4_f420262d"}
    assert longmemeval.disputed == reported
    assert longmemeval.corrected_gold.keys() == {"eac54add"}
    duplicates = [e for e in longmemeval.entries.values() if e.reason == "duplicate session"]
    assert len(duplicates) == 13
