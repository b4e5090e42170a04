"""What a reader of the replay is shown: grouped by session, within a budget, nothing twice."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.replay.evidence import CUT, Evidence, evidence_text, select_evidence
from memconform.replay.hits import DocumentKind, Hit
from memconform.scoring.reader.passages import BYTES_PER_TOKEN

_PLENTY = 1_000_000


def _hit(rank: int, session: str, text: str, kind: DocumentKind = "session") -> Hit:
    folder = "raw/lme" if kind == "session" else "memory/project/lme"
    path = f"{folder}/{session}.md"
    return Hit(rank, path, kind, session, f"2023/05/{len(session) + 10}", 1.0, text)


_TALK = "user: I keep bees.\n\nassistant: Lovely.\n\nuser: I own nine hives.\n"
_HITS = [
    _hit(1, "bees", _TALK),
    _hit(2, "tax", "user: I filed my taxes."),
    _hit(3, "bees", "The user keeps bees.", "fact"),
]


def test_hits_are_grouped_by_session_and_tell_rank_and_kind() -> None:
    evidence = select_evidence(_HITS, "How many hives?", _PLENTY)
    assert evidence_text(evidence.passages) == (
        f"[Session 1, 2023/05/14]\n\nhit 1, session:\n{_TALK.strip()}\n\n"
        "hit 3, fact:\nThe user keeps bees.\n\n"
        "[Session 2, 2023/05/13]\n\nhit 2, session:\nuser: I filed my taxes."
    )
    first, second = evidence.passages
    assert (first.id, first.session, first.date) == ("raw/lme/bees.md", "bees", "2023/05/14")
    assert [turn.id for turn in first.turns] == ["raw/lme/bees.md", "memory/project/lme/bees.md"]
    assert (evidence.shown, evidence.left_out) == (3, 0)
    assert not first.is_cut
    assert not second.is_cut


def test_the_ids_of_sessions_are_not_shown() -> None:
    """Those of LongMemEval begin with `answer_` where the answer is."""
    evidence = select_evidence([_hit(1, "answer_1", "Nine hives.", "fact")], "q", _PLENTY)
    assert "answer_1" not in evidence_text(evidence.passages)
    assert evidence.passages[0].session == "answer_1"


def test_one_session_on_two_dates_is_two() -> None:
    other = replace(_HITS[1], rank=2, date="2024/01/01")
    evidence = select_evidence([_HITS[1], other], "q", _PLENTY)
    assert [passage.date for passage in evidence.passages] == ["2023/05/13", "2024/01/01"]


def test_a_text_is_shown_once() -> None:
    again = replace(_HITS[0], rank=4, path="raw/lme/bees@20230514T0000.md")
    evidence = select_evidence([*_HITS, again], "How many hives?", _PLENTY)
    assert evidence_text(evidence.passages).count("nine hives") == 1
    assert (evidence.shown, evidence.left_out) == (4, 0)
    tight = select_evidence([_hit(1, "s", "x" * 4_000), _hit(2, "s", "x" * 4_000)], "q", 500)
    assert (tight.shown, tight.left_out) == (2, 2)


def test_no_hit_and_hits_without_a_text_are_no_evidence() -> None:
    assert select_evidence([], "q", _PLENTY) == Evidence((), 0, 0)
    assert select_evidence([_hit(1, "s", " \n")], "q", _PLENTY) == Evidence((), 0, 0)


_FRONT = '---\nsession_id: "s"\ndate: "2023-05-14T00:00:00Z"\n---\n'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{_FRONT}user: I keep bees.", "user: I keep bees."),
        # Text of the user, however it looks.
        ("---\nuser: I keep bees.\n---\nWell.", "---\nuser: I keep bees.\n---\nWell."),
        (f"user: {_FRONT}", f"user: {_FRONT.strip()}"),
    ],
)
def test_front_matter_of_the_brain_is_left_out(text: str, shown: str) -> None:
    [passage] = select_evidence([_hit(1, "s", text)], "q", _PLENTY).passages
    assert passage.turns[0].text == shown


_NOISE = "assistant: Some rain fell on the old town again.\n\n"
_LONG = f"{_NOISE * 20}user: I own nine hives.\n\n{_NOISE * 20}"


def test_over_budget_first_sessions_stay_whole_and_of_others_the_parts_about_the_question() -> None:
    hits = [_HITS[1], _hit(2, "long", _LONG), _HITS[2]]
    evidence = select_evidence(hits, "How many hives do I own?", 125)
    text = evidence_text(evidence.passages)
    assert [passage.is_cut for passage in evidence.passages] == [False, True, False]
    assert "user: I filed my taxes." in text
    # With its neighbours, between marks.
    assert f"{CUT}\n{_NOISE}user: I own nine hives.\n\n{_NOISE.strip()}\n{CUT}" in text
    assert "The user keeps bees." in text
    assert (evidence.shown, evidence.left_out) == (3, 1)
    without = select_evidence(hits, "What about rain?", 125)
    assert "nine hives" not in evidence_text(without.passages)


def test_a_hit_without_room_is_left_out() -> None:
    evidence = select_evidence([_HITS[1], _hit(2, "long", "nothing " * 100)], "taxes?", 25)
    assert [passage.session for passage in evidence.passages] == ["tax"]
    assert (evidence.shown, evidence.left_out) == (1, 1)


def test_a_part_of_a_long_turn_says_whose_it_is() -> None:
    turn = (
        "assistant: Here you are:\n" + "Wash the dishes.\n" * 100 + "Feed the bees.\n" + "x\n" * 9
    )
    evidence = select_evidence([_hit(1, "s", f"user: Help.\n\n{turn}")], "What of the bees?", 50)
    text = evidence_text(evidence.passages)
    assert f"assistant: {CUT}\nWash the dishes.\nFeed the bees.\nx\n" in text


def test_of_one_line_without_end_something_is_shown() -> None:
    evidence = select_evidence([_hit(1, "s", "user: " + "wordless" * 5_000)], "bees?", 500)
    assert "wordless" in evidence_text(evidence.passages)
    assert (evidence.shown, evidence.left_out) == (1, 1)


_TEXTS = st.lists(
    st.sampled_from(
        [
            *("user: ", "assistant: ", "I keep bees", "ü€𝄞", " ", "\n", "\n\n", "."),
            *("wash " * 30, "x" * 1_500, "\r\n", "---\n", _FRONT, "\ud800", "hives\n" * 200),
        ]
    ),
    max_size=12,
).map("".join)


@given(
    texts=st.lists(st.tuples(st.sampled_from("abc"), _TEXTS), max_size=8),
    budget=st.integers(0, 2_000),
)
def test_evidence_keeps_to_its_budget(texts: list[tuple[str, str]], budget: int) -> None:
    hits = [_hit(rank, session, text) for rank, (session, text) in enumerate(texts, start=1)]
    question = "How many hives, bees?"
    evidence = select_evidence(hits, question, budget)
    text = evidence_text(evidence.passages)
    assert len(text.encode("utf-8", "surrogatepass")) <= budget * BYTES_PER_TOKEN
    assert evidence == select_evidence(hits, question, budget)
    whole = select_evidence(hits, question, _PLENTY)
    assert whole.left_out == 0
    size = len(evidence_text(whole.passages).encode("utf-8", "surrogatepass"))
    # What fits exactly is whole; with a token less it is not.
    assert select_evidence(hits, question, -(-size // BYTES_PER_TOKEN)) == whole
    if whole.passages:
        assert select_evidence(hits, question, (size - 1) // BYTES_PER_TOKEN) != whole
    # Nothing is shown that is not in the hits, besides marks.
    sources = [hit.text for hit in hits]
    turns = [turn for passage in evidence.passages for turn in passage.turns]
    for run in (run for turn in turns for run in turn.text.split(CUT)):
        kept = run.strip().removesuffix("assistant:").removesuffix("user:").strip()
        assert any(kept in source for source in sources)
    assert all(turn.text for turn in turns)
