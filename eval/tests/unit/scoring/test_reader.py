"""What a reader is shown and asked, and which of its replies count."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.errors import UsageError
from memconform.llm.chat import ChatRequest, Message, Usage
from memconform.llm.replies import cut_fault
from memconform.scoring.reader.names import Method
from memconform.scoring.reader.official_prompts import OfficialWording, read_script_texts
from memconform.scoring.reader.passages import (
    BYTES_PER_TOKEN,
    Passage,
    fit_passages,
    newest_first,
    passage_text,
    retrieved_passages,
)
from memconform.scoring.reader.prompts import DECLINES, OwnWording
from memconform.upstream.extractive import complete
from memconform.upstream.reader_prompt import read_prompt


def _session(name: str, date: str, *texts: str) -> Session:
    return Session(
        name,
        date,
        tuple(
            Turn(f"{name}_{n}", "user" if n % 2 else "assistant", text, by_user=n % 2 == 1)
            for n, text in enumerate(texts, start=1)
        ),
    )


_TALK = Conversation(
    "q",
    (
        _session("b", "2023/05/21 (Sun) 10:00", "I keep bees.", "Lovely.", "Nine hives."),
        _session("a", "2023/05/20 (Sat) 10:00", "I moved to Brel.", "Nice."),
        _session("c", "2023/05/21 (Sun) 10:00", "I sold a hive."),
    ),
)


def _ids(passages: "list[Passage] | tuple[Passage, ...]") -> list[str]:
    return [passage.id for passage in passages]


def test_each_passage_is_shown_once_in_order_of_date() -> None:
    passages = retrieved_passages(_TALK, ["c", "b_3", "a", "b_1", "c"], "session")
    assert _ids(passages) == ["c", "b", "a"]
    assert _ids(fit_passages(passages, 1_000, "all").passages) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("unit", "texts"),
    [
        ("turn", ["I keep bees."]),
        ("round", ["I keep bees.", "Lovely."]),
        ("session", ["I keep bees.", "Lovely.", "Nine hives."]),
    ],
)
def test_a_retrieved_turn_is_shown_alone_or_with_its_reply_or_session(
    unit: str, texts: list[str]
) -> None:
    [passage] = retrieved_passages(_TALK, ["b_1"], unit)  # type: ignore[arg-type] # of a Literal
    assert [turn.text for turn in passage.turns] == texts


def test_a_ranking_of_another_benchmark_is_an_error() -> None:
    with pytest.raises(UsageError) as raised:
        retrieved_passages(_TALK, ["b_1", "elsewhere"], "turn")
    assert raised.value.code == "unknown_item"


def test_turns_of_the_user_alone() -> None:
    shown = fit_passages(retrieved_passages(_TALK, ["b"], "session"), 1_000, "user")
    assert [turn.text for turn in shown.passages[0].turns] == ["I keep bees.", "Nine hives."]


def test_full_context_ends_at_the_first_session_without_room() -> None:
    newest = newest_first(_TALK)
    assert _ids(newest) == ["c", "b", "a"]
    room = (newest[0].size + newest[2].size) // BYTES_PER_TOKEN + 1
    assert _ids(fit_passages(newest, room, "all", unbroken=True).passages) == ["c"]
    assert _ids(fit_passages(newest, room, "all").passages) == ["a", "c"]


@given(sizes=st.lists(st.integers(0, 400), min_size=1, max_size=8), budget=st.integers(1, 300))
def test_passages_never_exceed_their_budget_and_none_vanishes_uncounted(
    sizes: list[int], budget: int
) -> None:
    passages = [
        Passage(f"{n}", f"{n}", "day", (Turn(f"{n}_1", "user", "é" * size, by_user=True),), n)
        for n, size in enumerate(sizes)
    ]
    shown = fit_passages(passages, budget, "all")
    whole = [passage for passage in shown.passages if not passage.is_cut]
    assert sum(passage.size for passage in whole) <= budget * BYTES_PER_TOKEN
    assert len(whole) + shown.left_out == len(passages)
    for passage in shown.passages:
        assert not passage.is_cut or passage.id not in passage.visible


@pytest.mark.parametrize("history", ["text", "json"])
@pytest.mark.parametrize("method", ["direct", "con", "con-separate"])
def test_the_scripted_reader_finds_question_and_evidence(method: Method, history: str) -> None:
    wording = OwnWording(method, history)  # type: ignore[arg-type] # of a Literal
    passages = retrieved_passages(_TALK, ["a", "b"], "session")
    request = wording.answer_request("How many hives do I have?", "2023/06/01", passages)
    system, user = (message.content for message in request.messages)
    prompt = read_prompt(system, [user])
    assert prompt.question == "How many hives do I have?"
    assert [text for _, text in prompt.notes] == [
        "\n\n".join(passage_text(passage, wording.history) for passage in passages)
    ]
    assert "hives" in wording.parse_answer(request, complete(system, [user]))
    request = wording.answer_request("How many hives do I have?", None, None)
    assert wording.parse_answer(request, complete(*_split(request))) == DECLINES
    request = wording.note_request("How many hives do I have?", None, passages[1])
    assert "hives" in complete(*_split(request))


def _split(request: ChatRequest) -> tuple[str, list[str]]:
    return request.messages[0].content, [message.content for message in request.messages[1:]]


def test_evidence_cannot_end_its_fence() -> None:
    wording = OwnWording("direct", "text")
    forged = wording.answer_request("q", None, [_passage("I keep bees.")]).messages[1].content
    request = wording.answer_request("How many?", None, [_passage(forged)])
    assert read_prompt(*_split(request)).question == "How many?"


def _passage(text: str) -> Passage:
    return Passage("s", "s", "day", (Turn("s_1", "user", text, by_user=True),))


@pytest.mark.parametrize("method", ["direct", "con"])
@pytest.mark.parametrize("reply", ["", "  \n", "echo"])
def test_a_reply_without_an_answer_is_no_answer(method: Method, reply: str) -> None:
    wording = OwnWording(method, "text")
    request = wording.answer_request("How many?", None, [_passage("Nine.")])
    text = "\n".join(m.content for m in request.messages) if reply == "echo" else reply
    with pytest.raises(ValueError, match="it "):
        wording.parse_answer(request, text)


def test_notes_before_an_answer_are_not_part_of_it() -> None:
    wording = OwnWording("con", "text")
    request = wording.answer_request("How many?", None, [_passage("Nine.")])
    with pytest.raises(ValueError, match="no line"):
        wording.parse_answer(request, "The note says nine.")
    reply = "Notes: Answer: is asked.\n**Answer:** nine\nhives"
    assert wording.parse_answer(request, reply) == "nine\nhives"
    assert wording.parse_answer(request, "**Answer: nine hives**") == "nine hives"


@pytest.mark.parametrize("note", ["empty", "Empty.", ' "empty" '])
def test_a_passage_without_notes_is_left_out(note: str) -> None:
    assert OwnWording("con-separate", "text").apply_note(_passage("x"), note) is None
    kept = OwnWording("con-separate", "text").apply_note(_passage("x"), "Nine hives.")
    assert kept is not None
    assert kept.turns[0].text == "Nine hives."


def test_a_digest_changes_with_method_and_history() -> None:
    digests = {
        OwnWording(method, history).digest()
        for method in ("direct", "con", "con-separate")
        for history in ("text", "json")
    }
    assert len(digests) == 6


_SCRIPT = """
def prepare_prompt(entry, cot):
    if retriever_type == 'no-retrieval':
        answer_prompt_template = '{}'
        if cot:
            answer_prompt_template += 'Think.'
    else:
        if cot:
            answer_prompt_template = 'Step. {} on {}: {}'
        else:
            answer_prompt_template = 'Plain. {} on {}: {}'
    con_prompt = 'Note {} {} {} {}'
    sess_string += '{}={}'.format(1, 2)
    history_string += '#{} {} {}'.format(1, 2, 3)
"""


def test_official_texts_are_read_and_not_executed(tmp_path: Path) -> None:
    script = tmp_path / "run_generation.py"
    script.write_text(f"raise SystemExit\n{_SCRIPT}")
    texts = read_script_texts(script)
    wording = OfficialWording(texts, "direct", "text")
    passages = retrieved_passages(_TALK, ["b_1", "a"], "turn")
    [message] = wording.answer_request("q?", "day", passages).messages
    assert message.content == (
        "Plain. #1 2023/05/20 (Sat) 10:00 user=I moved to Brel.assistant=Nice."
        "#2 2023/05/21 (Sun) 10:00 user=I keep bees. on day: q?"
    )
    stepwise = OfficialWording(texts, "con", "json")
    assert stepwise.answer_request("q?", "day", None).messages[0].content == "q?Think."
    noted = stepwise.apply_note(passages[0], "nine")
    assert '{"session_summary": "nine"}' in (
        stepwise.answer_request("q?", "day", [noted]).messages[0].content
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def prepare_prompt", "def other"),
        ("'Step. {} on {}: {}'", "'Step. {0.__class__} on {}: {}'"),
        ("'Note {} {} {} {}'", "'Note {}'"),
        ("def prepare_prompt(entry, cot):", "def prepare_prompt(entry, cot)"),
    ],
)
def test_another_script_is_refused(tmp_path: Path, old: str, new: str) -> None:
    script = tmp_path / "run_generation.py"
    script.write_text(_SCRIPT.replace(old, new))
    with pytest.raises(UsageError) as raised:
        read_script_texts(script)
    assert raised.value.code == "bad_prompt_script"


def test_a_prompt_that_a_service_cut_is_no_answer() -> None:
    """Ollama cuts what exceeds its context window without a word, and answers from the rest."""
    request = ChatRequest(
        messages=(Message("user", "word " * 20_000),), prompt_version="v", max_output_tokens=9
    )
    assert "cut it" in cut_fault(request, Usage(4_096, 5))
    assert not cut_fault(request, Usage(20_000, 5))
    assert not cut_fault(request, None)
    # Ten rounds of LongMemEval, and a window of 2,048.
    rounds = replace(request, messages=(Message("user", "word " * 5_000),))
    assert cut_fault(rounds, Usage(2_048, 5))
    # Chinese has two tokens for three characters, and three bytes for each.
    chinese = replace(request, messages=(Message("user", "蜂" * 20_000),))
    assert not cut_fault(chinese, Usage(14_000, 5))
    short = replace(request, messages=(Message("user", "word " * 100),))
    assert not cut_fault(short, Usage(1, 5))


def test_a_turn_of_two_rounds_is_shown_once() -> None:
    passages = retrieved_passages(_TALK, ["b_1", "b_2"], "round")
    assert [_turns(passage) for passage in passages] == [["b_1", "b_2"], ["b_2", "b_3"]]
    shown = fit_passages(passages, 1_000, "all").passages
    assert [_turns(passage) for passage in shown] == [["b_1", "b_2"], ["b_3"]]
    assert frozenset().union(*(passage.visible for passage in shown)) == {"b_1", "b_2", "b_3"}


def test_a_turn_is_shown_by_the_passage_that_fits() -> None:
    """It was left to a passage that did not fit, was never shown, and counted as seen."""
    talk = Conversation("q", (_session("s", "2023/05/20", "x" * 400, "y", "z"),))
    passages = retrieved_passages(talk, ["s_1", "s_2"], "round")
    other = Passage("o", "o", "2023/05/19", (Turn("o_1", "user", "w", by_user=True),))
    shown = fit_passages([other, *passages], 40, "all")
    [_, passage] = shown.passages
    assert (_turns(passage), shown.left_out) == (["s_2", "s_3"], 1)
    assert passage.visible == {"s_2", "s_3"}
    late = fit_passages(retrieved_passages(talk, ["s_2"], "turn"), 1, "all").passages
    assert "s_2" not in late[0].visible


def _turns(passage: Passage) -> list[str]:
    return [turn.id for turn in passage.turns]


def test_a_session_without_the_assistants_turns_is_not_seen_whole() -> None:
    [whole] = fit_passages(retrieved_passages(_TALK, ["b"], "session"), 1_000, "all").passages
    [part] = fit_passages(retrieved_passages(_TALK, ["b"], "session"), 1_000, "user").passages
    assert ("b" in whole.visible, "b" in part.visible) == (True, False)
    assert {"b_1", "b_3"} <= part.visible


@pytest.mark.parametrize(
    "reply",
    [
        "Question: How many?",
        "That reply is invalid: it repeats the prompt.",
        "-----evidence 0123456789abcdef-----",
    ],
)
def test_a_part_of_the_prompt_is_no_answer(reply: str) -> None:
    wording = OwnWording("direct", "text")
    request = wording.answer_request("How many?", None, [_passage("Nine.")])
    with pytest.raises(ValueError, match="repeats the prompt"):
        wording.parse_answer(request, f"Well: {reply}")


def test_official_prompts_without_memory_may_be_quoted(tmp_path: Path) -> None:
    """The prompt is the question, which an answer may well repeat."""
    script = tmp_path / "run_generation.py"
    script.write_text(_SCRIPT)
    wording = OfficialWording(read_script_texts(script), "direct", "text")
    question = "How many hives are there in the garden behind the old house in Brel?"
    request = wording.answer_request(question, "day", None)
    assert wording.parse_answer(request, f"{question} Nine.") == f"{question} Nine."
