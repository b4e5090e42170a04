"""The scripted reader finds question and evidence by structure, or refuses; it never guesses."""

import re
from contextlib import suppress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.upstream.extractive import NO_ANSWER, complete
from memconform.upstream.reader_prompt import ACCEPTED, UnreadablePromptError, read_prompt
from memconform.upstream.script import Reply, Script, ScriptRule
from memconform.upstream.server import ScriptedUpstream

QUESTION = "Which harbour does the mail boat Petrel leave from?"
ANSWER = "The mail boat Petrel leaves from Skarvik harbour."
OTHER = "Wool is dyed in the shed behind the smithy."
DUTIES = "You answer for a mail boat company. Which harbour a boat leaves from matters to readers."
"""Instructions that share more terms with the question than the answer does."""

ONE_MESSAGE = {
    "headings with titled notes": (
        f"{DUTIES}\n\n## Evidence\n\n### Wool (raw/wool.md)\n{OTHER}\n\n"
        f"### raw/boat.md (raw/boat.md)\n{ANSWER}\n\n## Question\n\n{QUESTION}"
    ),
    "headings of level 1, evidence without titles": (
        f"# Context\n{OTHER} {ANSWER}\n# User question\n{QUESTION}\n# Answer"
    ),
    "headings with plain titles": (
        f"## Documents\n\n### Wool\n\n{OTHER}\n\n### Boats\n\n{ANSWER}\n\n## Question\n\n{QUESTION}"
    ),
    "chats with a date and labelled facts": (
        f"{DUTIES}\n\nTelling dates apart:\n- Prefer late facts on the mail boat question.\n\n"
        "Chat history:\n\nResolved: the harbour that the mail boat Petrel leaves from.\n\n"
        f"Recalled facts (2):\n\n 1. [2024-01-02] [session=s7] [wool]\n{OTHER}\n"
        "1. Rinse\n2. Dye\n\n"
        f" 2. [unknown] [boat]\n{ANSWER}\n\nToday's date: 2024-02-03\nQuestion: {QUESTION}\n"
        "Your answer (think first):"
    ),
    "labelled facts on one line": (
        f"Facts:\n1. [2024-01-02] {OTHER}\n2. [2024-01-03] {ANSWER}\n\nQuestion: {QUESTION}"
    ),
    "numbered notes without a heading": (
        f"{DUTIES}\n\n[1] {OTHER}\n[2] {ANSWER}\n\nQuestion: {QUESTION}\nAnswer:"
    ),
    "numbered list": f"Passages:\n1. {OTHER}\n2. {ANSWER}\n\nQuery: {QUESTION}",
    "a label on the line of its text": f"Context: {OTHER} {ANSWER}\nQuestion: {QUESTION}\nAnswer:",
    "a bullet list": f"**Relevant memories:**\n- {OTHER}\n- {ANSWER}\n\n**Question:** {QUESTION}",
    "tags": (
        "<documents>\n<document index='1'>\n<source>wool.md</source>\n<document_content>\n"
        f"{OTHER}\n"
        "</document_content>\n</document>\n<document index='2'>\n<source>boat.md</source>\n"
        f"<document_content>\n{ANSWER}\n</document_content>\n</document>\n</documents>\n\n"
        f"{DUTIES}\n\n<question>{QUESTION}</question>"
    ),
    "one tag": (
        f"{DUTIES}\n<context>\n{OTHER}\n{ANSWER}\n</context>\n{DUTIES}\nQuestion: {QUESTION}"
    ),
    "items without a common tag": (
        f"<doc>{OTHER}</doc>\n<doc>{ANSWER}</doc>\n{DUTIES}\nQuestion: {QUESTION}"
    ),
    "the question first": f"Question: {QUESTION}\n\nNotes:\n\n{OTHER}\n\n{ANSWER}\n\nAnswer:",
    "the question first, under a heading": f"## Question\n{QUESTION}\n## Sources\n{OTHER} {ANSWER}",
    "a question on the next line": f"Sources:\n{ANSWER}\n\nQuestion:\n\n{QUESTION}\n",
    "instructions behind the question": (
        f"Notes:\n{ANSWER}\n\nQuestion: {QUESTION}\n\n{DUTIES} Use a short sentence."
    ),
    "a note that asks": (
        f"## Evidence\n\n### Chat (raw/c.md)\nQuestion: is it?\n\n## Question\n\nNo. {OTHER}\n\n"
        f"### Boat (raw/b.md)\n{ANSWER}\n\n## Question\n\n{QUESTION}"
    ),
    "a note that looks like evidence": (
        f"## Evidence\n\n### Boat (raw/b.md)\nNotes:\n{ANSWER}\n\n## Question\n\n{QUESTION}"
    ),
}


@pytest.mark.parametrize("user", ONE_MESSAGE.values(), ids=ONE_MESSAGE)
def test_the_answer_is_the_sentence_of_the_evidence(user: str) -> None:
    prompt = read_prompt(DUTIES, [user])
    assert prompt.question == QUESTION
    assert re.sub(r"^- | \[\d\]$", "", complete(DUTIES, [user])) == ANSWER


MESSAGES = {
    "evidence in the system message, the bare question": (
        f"{DUTIES}\n\nMemories:\n- {OTHER}\n- {ANSWER}",
        [QUESTION],
    ),
    "evidence in the system message, a marked question": (
        f"{DUTIES}\n\n## Context\n\n{ANSWER}",
        [f"Question: {QUESTION}"],
    ),
    "evidence in an earlier message": ("", [f"<notes>{ANSWER}</notes>", QUESTION]),
}


@pytest.mark.parametrize(("system", "users"), MESSAGES.values(), ids=MESSAGES)
def test_the_evidence_may_be_in_another_message(system: str, users: list[str]) -> None:
    assert read_prompt(system, users).question == QUESTION
    assert complete(system, users).removeprefix("- ") == ANSWER


EMPTY = {
    "a question alone": f"## Question\n\n{QUESTION}",
    "an empty section": (
        f"{DUTIES}\n\nChat history:\n\n\n\nDate: today\nQuestion: {QUESTION}\nAnswer:"
    ),
    "none": f"Context: none\n\nQuestion: {QUESTION}",
    "nothing found": f"## Evidence\n\n(no matching boats found)\n\n## Question\n\n{QUESTION}",
    "no facts": f"History:\n\nRetrieved facts (0):\n\nQuestion: {QUESTION}",
    "empty tags": f"<context></context>\nQuestion: {QUESTION}",
}


@pytest.mark.parametrize("user", EMPTY.values(), ids=EMPTY)
def test_without_evidence_there_is_no_information(user: str) -> None:
    assert read_prompt(DUTIES, [user]).notes == []
    assert complete(DUTIES, [user]) == NO_ANSWER


REFUSED = {
    "the bare question alone": (QUESTION, "neither a marked question nor marked evidence"),
    "words and a question": (f"{ANSWER} {OTHER}\n{QUESTION}", "no marked question"),
    "a question of many lines": (f"{DUTIES}\nIs it?\n{QUESTION}", "no marked question"),
    "evidence, and the bare question": (
        f"## Evidence\n{ANSWER}\n\n{QUESTION}",
        "no marked question",
    ),
    "a question and unmarked text": (f"{ANSWER}\n\nQuestion: {QUESTION}", "no marked evidence"),
    "two questions": (
        f"Question: Is it?\nAnswer: yes\n\nNotes:\n{ANSWER}\n\nQuestion: {QUESTION}",
        "before the evidence and another",
    ),
    "a section of rules behind the evidence": (
        f"## Evidence\n\n{OTHER}\n\n## Instructions\n\n{DUTIES}\n\n## Question\n\n{QUESTION}",
        "'## Instructions'",
    ),
    "a list of rules behind the evidence": (
        f"Notes:\n{OTHER}\n\nRules:\n- {DUTIES}\n\nQuestion: {QUESTION}",
        "'Rules:'",
    ),
    "an instruction behind the evidence": (
        f"Context:\n{OTHER}\n\nUse the context to say where the boat is.\n\nQuestion: {QUESTION}",
        "instructions follow",
    ),
    "an instruction at the end": (
        f"Question: {QUESTION}\n\nNotes:\n[1] {OTHER}\n\nAnswer the question from the notes above.",
        "instructions follow",
    ),
    "a question of several paragraphs": (
        f"## Evidence\n\n{ANSWER}\n\n## Question\n\n{QUESTION}\n\nWhich one?",
        "several paragraphs",
    ),
    "an empty question": (f"## Evidence\n\n{ANSWER}\n\n## Question\n\n", "no marked question"),
    "nothing": ("", "no marked question"),
}


@pytest.mark.parametrize(("user", "part"), REFUSED.values(), ids=REFUSED)
def test_another_prompt_is_refused_with_the_part_that_is_missing(user: str, part: str) -> None:
    """On the public daemons, 17 of 20 questions were answered with words of their prompts."""
    with pytest.raises(UnreadablePromptError, match=re.escape(part)) as refusal:
        complete("Reply briefly.", [user])
    assert ACCEPTED in str(refusal.value)


def test_a_system_message_that_may_hold_evidence_is_not_taken_for_instructions() -> None:
    system = f"What you know is this.\n\n{ANSWER}"
    with pytest.raises(UnreadablePromptError, match="no marked evidence"):
        complete(system, [f"Question: {QUESTION}"])


_LINES = st.lists(
    st.sampled_from(
        (
            *("## Evidence", "## Question", "### Boat (raw/boat.md)", "Notes:", "Question: boat?"),
            *("Question:", "Context:", "History:", "[1] boats sail", "[2] raw/x.md", "1. [d] boat"),
            *(
                "<context>",
                "</context>",
                "<question>boat?</question>",
                "Answer:",
                "Rules:",
                "# Boat",
            ),
            *("The boat sails.", "Use the context above.", "Date: boat", "- boat", "", "", "none"),
        )
    ),
    max_size=12,
)


@given(_LINES, _LINES)
def test_any_prompt_is_answered_from_its_notes_or_refused(
    system: list[str], user: list[str]
) -> None:
    users = ["\n".join(user)]
    try:
        prompt = read_prompt("\n".join(system), users)
    except UnreadablePromptError:
        return
    assert prompt.question.strip()
    answer = complete("\n".join(system), users)
    assert answer == NO_ANSWER or any(
        re.sub(r" \[\d+\]$", "", answer) in text for _, text in prompt.notes
    )


@given(st.sampled_from(sorted(ONE_MESSAGE)), st.integers(0, 400))
def test_a_shortened_prompt_is_never_answered_with_instructions(name: str, cut: int) -> None:
    """Cutting a prompt removes marks; what is left must not become evidence."""
    user = ONE_MESSAGE[name][cut:]
    try:
        answer = complete("", [user])
    except UnreadablePromptError:
        return
    assert "mail boat company" not in answer
    assert "matters to readers" not in answer


@pytest.mark.parametrize(
    "piece",
    [
        *("Question: a\n", "Question:\n", "## Question\n", "<question>\n", "<context>\n", "<doc>"),
        *("Retrieved facts:\n", "[1] x\n", "### a (", "Notes:\n\n[1] a\n", "Answer ", "\n", " "),
    ],
)
@pytest.mark.timeout(120)  # in milliseconds, or for hours
def test_a_hostile_prompt_takes_linear_time(piece: str) -> None:
    """Text up to the end was kept for each of 400,000 questions, until memory ran out."""
    users = [f"<context>\nNotes:\n{piece * (300_000 // len(piece))}\nQuestion: is it?"]
    with suppress(UnreadablePromptError):
        complete("", users)


_UNREADABLE = {"role": "user", "content": f"{DUTIES} {OTHER}\nIs it?\n{QUESTION}"}


def _upstream(*rules: ScriptRule) -> httpx.AsyncClient:
    app = ScriptedUpstream(Script(rules=list(rules))).app()
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://upstream")


async def test_openai_s_clients_are_told_what_the_reader_cannot_find() -> None:
    async with _upstream() as http:
        for stream in (False, True):
            body = {"model": "extractive", "messages": [_UNREADABLE], "stream": stream}
            answer = await http.post("/v1/chat/completions", json=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
            assert error["code"] == "unreadable_prompt"
            assert "it has no marked question" in error["message"]
            assert ACCEPTED in error["message"]
        counts = (await http.get("/_control/counts")).json()
        assert (counts["chat"], counts["answers"], counts["refused"]) == (2, 2, 2)
        assert "no marked question" in counts["last_refusal"]
        records = (await http.get("/_control/requests")).json()["requests"]
    assert [(r["outcome"], "no marked question" in r["refusal"]) for r in records] == [
        ("refused", True)
    ] * 2


async def test_anthropic_s_clients_are_told_what_the_reader_cannot_find() -> None:
    async with _upstream() as http:
        body = {"model": "extractive", "messages": [_UNREADABLE], "max_tokens": 9}
        answer = await http.post("/v1/messages", json=body)
    error = answer.json()
    assert (answer.status_code, error["type"]) == (400, "error")
    assert error["error"]["type"] == "invalid_request_error"
    assert "it has no marked question" in error["error"]["message"]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Reply(text="seven"), 200),
        (Reply(deltas=["se", "ven"]), 200),
        (Reply(body={"own": True}), 200),
        (Reply(status=429), 429),
        (Reply(fault="error"), 500),
    ],
)
async def test_a_scripted_reply_needs_no_readable_prompt(reply: Reply, status: int) -> None:
    async with _upstream(ScriptRule(reply=reply)) as http:
        body = {"model": "extractive", "messages": [_UNREADABLE]}
        answer = await http.post("/chat/completions", json=body)
        counts = (await http.get("/_control/counts")).json()
    assert answer.status_code == status
    assert "unreadable" not in answer.text
    assert (counts["answers"], counts["refused"]) == (1, 0)


async def test_scores_and_verdicts_are_not_counted_as_answers() -> None:
    notes = f"Notes:\n\n[1] a.md\n{ANSWER}\n\nQuestion: {QUESTION}"
    async with _upstream() as http:
        for system in ('Reply {"scores": [...]}', 'Reply "reason" and "verdict"', DUTIES):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": notes}]
            await http.post("/chat/completions", json={"model": "m", "messages": messages})
        counts = (await http.get("/_control/counts")).json()
        assert (counts["chat"], counts["answers"], counts["refused"]) == (3, 1, 0)
        await http.put("/_control/script", json={"rules": []})
        assert (await http.get("/_control/counts")).json()["chat"] == 0
