"""Files of questions whose gold is disputed."""

import gzip
from pathlib import Path

import pytest

from memconform.datasets.errata import read_errata, require_known_ids
from memconform.errors import UsageError


def test_errata_say_why_by_id(tmp_path: Path) -> None:
    content = '{"conv-1#12": "the turn says June"}'
    plain, packed = tmp_path / "e.json", tmp_path / "e.json.gz"
    plain.write_text(content)
    packed.write_bytes(gzip.compress(content.encode()))
    assert read_errata(plain) == read_errata(packed) == {"conv-1#12": "the turn says June"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'["conv-1#12"]', "is not a JSON object"),
        (b'{"conv-1#12": ""}', "'conv-1#12' has no reason"),
        (b'{"conv-1#12": null}', "'conv-1#12' has no reason"),
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


def test_errata_of_an_unknown_question_are_rejected() -> None:
    require_known_ids({"conv-1#0": "x"}, {"conv-1#0", "conv-1#1"})
    with pytest.raises(UsageError, match="'conv-1#11'") as error:
        require_known_ids({"conv-1#0": "x", "conv-1#11": "y"}, {"conv-1#0", "conv-1#1"})
    assert "did you mean 'conv-1#1'?" in error.value.hint
