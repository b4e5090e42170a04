"""The journal of an SDK's retrieval, the folder of a replay, and the report of its brain."""

import json
from pathlib import Path

import pytest

from memconform.errors import UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure
from memconform.replay.journal import RetrievalJournal
from memconform.replay.manifest import claimed_folder, require_continuable
from memconform.replay.placement import has_prefixes
from memconform.replay.records import ReplayJournalHeader, ReplayRetrieval
from memconform.replay.shared_brain import BrainKey, BrainRecord
from memconform.reports.lme import heuristic_notes

_HEADER = ReplayJournalHeader(sdk="go", identity="build", settings="settings")


def _record(name: str, **fields: object) -> ReplayRetrieval:
    values = {"question": name, "hits": [], "texts": [], "latency_ms": 1.0, "search_ms": None}
    return ReplayRetrieval.model_validate(values | fields)


def _journal(folder: Path, *names: str) -> RetrievalJournal:
    journal = RetrievalJournal(folder, _HEADER)
    for name in names:
        journal.append(_record(name))
    journal.state(IndexVerified())
    journal.close("done")
    return journal


def test_records_of_all_starts_are_kept(tmp_path: Path) -> None:
    _journal(tmp_path, "q1")
    _journal(tmp_path, "q2")
    journal = RetrievalJournal(tmp_path, _HEADER)
    assert len(journal) == 2
    assert journal["q2"] == _record("q2")
    assert "q3" not in journal


def test_a_record_that_was_cut_short_is_asked_again(tmp_path: Path) -> None:
    _journal(tmp_path, "q1", "q2")
    path = tmp_path / "001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    proved = lines[3]
    for size in (1, len(lines[2]) // 2, len(lines[2]) - 1):
        path.write_bytes(lines[0] + lines[1] + proved + lines[2][:size])
        journal = RetrievalJournal(tmp_path, _HEADER)
        assert ("q1" in journal, "q2" in journal) == (True, False)
    path.write_bytes(lines[0][:-5])
    assert len(RetrievalJournal(tmp_path, _HEADER)) == 0


def test_a_journal_after_a_deleted_one_has_a_name_of_its_own(tmp_path: Path) -> None:
    """It once had the name of the one that was left, and could not be written."""
    _journal(tmp_path, "q1")
    _journal(tmp_path, "q2")
    (tmp_path / "001.jsonl").unlink()
    _journal(tmp_path, "q3")
    journal = RetrievalJournal(tmp_path, _HEADER)
    assert [name in journal for name in ("q1", "q2", "q3")] == [False, True, True]


def test_a_record_with_an_error_or_a_secret_is_asked_again(tmp_path: Path) -> None:
    journal = RetrievalJournal(tmp_path, _HEADER)
    failed = _record("q1", error=Failure(code="http_500", message="boom"))
    journal.append(failed)
    journal.append(_record("q2", redacted=True))
    journal.state(IndexVerified())
    assert journal["q2"].redacted
    assert [name in journal for name in ("q1", "q2")] == [False, True]
    journal.close("done")
    again = RetrievalJournal(tmp_path, _HEADER)
    assert [name in again for name in ("q1", "q2")] == [False, False]


def test_what_no_verification_followed_is_asked_again(tmp_path: Path) -> None:
    journal = RetrievalJournal(tmp_path, _HEADER)
    journal.append(_record("q1"))
    assert "q1" not in journal
    journal.state(IndexVerified())
    journal.append(_record("q2"))
    journal.close("killed")
    again = RetrievalJournal(tmp_path, _HEADER)
    for each in (journal, again):
        assert [name in each for name in ("q1", "q2")] == [True, False]


def test_an_index_that_changed_takes_all_that_was_asked_of_it(tmp_path: Path) -> None:
    """Earlier verifications sample: the loss may be older. Another start has another index."""
    _journal(tmp_path, "q1")
    journal = RetrievalJournal(tmp_path, _HEADER)
    journal.append(_record("q2"))
    journal.state(IndexVerified())
    journal.append(_record("q3"))
    journal.state(IndexInvalidated(error=Failure(code="brain_changed", message="m")))
    journal.close("brain_changed")
    again = RetrievalJournal(tmp_path, _HEADER)
    for each in (journal, again):
        assert [name in each for name in ("q1", "q2", "q3")] == [True, False, False]


def test_a_journal_of_an_older_version_is_not_continued(tmp_path: Path) -> None:
    """It says nothing of what was verified, and would be taken for one that counts nothing."""
    _journal(tmp_path, "q1")
    path = tmp_path / "001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"lme-journal@2", b"lme-journal@1"))
    with pytest.raises(UsageError, match="another version of memconform wrote it") as caught:
        RetrievalJournal(tmp_path, _HEADER)
    assert caught.value.code == "journal_unreadable"


@pytest.mark.parametrize("damage", [b"garbage\n", b"{}\n", b"\x00\x00\n", b"[1]\n"])
def test_a_damaged_journal_is_refused_with_its_place(tmp_path: Path, damage: bytes) -> None:
    _journal(tmp_path, "q1")
    path = tmp_path / "001.jsonl"
    head, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([head, damage, *rest]))
    with pytest.raises(UsageError, match="line 2 is not a record") as caught:
        RetrievalJournal(tmp_path, _HEADER)
    assert caught.value.code == "journal_unreadable"


def test_a_journal_of_another_build_is_refused(tmp_path: Path) -> None:
    _journal(tmp_path, "q1")
    with pytest.raises(UsageError) as caught:
        RetrievalJournal(tmp_path, _HEADER.model_copy(update={"identity": "other"}))
    assert caught.value.code == "resume_mismatch"


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    with claimed_folder(tmp_path / "out"):
        with pytest.raises(UsageError) as caught, claimed_folder(tmp_path / "out"):
            pass
        assert caught.value.code == "output_in_use"
    with claimed_folder(tmp_path / "out"):
        pass


def test_a_folder_of_something_else_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"it has notes\.txt") as caught, claimed_folder(tmp_path):
        pass
    assert caught.value.code == "output_taken"


def test_a_manifest_of_something_else_is_no_replay(tmp_path: Path) -> None:
    require_continuable(tmp_path, ["go"], brain="b")
    (tmp_path / "manifest.json").write_text(json.dumps({"name": "a package"}))
    with pytest.raises(UsageError) as caught:
        require_continuable(tmp_path, ["go"], brain="b")
    assert caught.value.code == "output_taken"


@pytest.mark.parametrize(
    ("path", "filters", "expected"),
    [
        ("raw/lme/a.md", {}, True),
        ("raw/lme/a.md", {"scope": "raw"}, True),
        ("raw/lme/a.md", {"scope": "project"}, False),
        ("raw/lme/a.md", {"scope": "global"}, False),
        ("memory/project/p/a.md", {"project": "p"}, True),
        ("memory/project/pp/a.md", {"project": "p"}, False),
        ("memory/project/p/a.md", {"project": "p", "path_prefix": "raw/"}, False),
    ],
)
def test_filters_select_documents_by_their_path(
    *, path: str, filters: dict[str, str], expected: bool
) -> None:
    given: dict[str, str | None] = {"path_prefix": None, "scope": None, "project": None}
    assert has_prefixes(path, **(given | filters)) is expected


def test_facts_of_the_heuristic_are_noted() -> None:
    key = BrainKey(dataset_sha256="0", questions=(), mode="replay", project="p", extractor="m")
    record = BrainRecord(key=key, sessions=3, facts=1)
    assert heuristic_notes(record) == []
    failed = {"raw/lme/a.md": Failure(code="llm_invalid_reply", message="no JSON")}
    [note] = heuristic_notes(record.model_copy(update={"by_heuristic": failed}))
    assert note.startswith("1 of 3 sessions have the facts of the heuristic")
    assert note.endswith("raw/lme/a.md: llm_invalid_reply: no JSON")
