"""Rubrics: what a judge is asked by question type, and which replies count."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.scoring.judge import lenient, longmemeval
from memconform.scoring.judge.lenient import LenientRubric
from memconform.scoring.judge.longmemeval import (
    LongMemEvalRubric,
    contains_yes,
    kind_of,
    parse_yes_no,
)
from memconform.scoring.judge.official_prompts import OfficialRubric, read_official_prompts
from memconform.scoring.judge.prompt import MAX_CANDIDATE, SYSTEM
from memconform.scoring.judge.rubric import STRICT, Rubric, StrictRubric
from memconform.scoring.statuses import QuestionStatus
from memconform.upstream.lexical_judge import is_judging, judge

TYPES = {
    "single-session-user": "fact",
    "single-session-assistant": "fact",
    "multi-session": "fact",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    "single-session-preference": "preference",
}
OWN: list[Rubric] = [STRICT, LenientRubric(), LongMemEvalRubric()]


def _question(category: str = "multi-session", *, abstain: bool = False) -> Question:
    return Question(
        id="q_abs" if abstain else "q",
        question="How many boats lie in Brel?",
        category=category,
        answers=("4",),
        abstain=abstain,
    )


@pytest.mark.parametrize(("category", "kind"), TYPES.items())
def test_each_type_is_judged_by_its_own_rule(category: str, kind: str) -> None:
    question = _question(category)
    assert kind_of(question) == kind
    system = LongMemEvalRubric().request(question, "Four").messages[0].content
    rules = {name for name, rule in longmemeval._RULES.items() if rule in system}
    # The temporal rule extends that of facts.
    assert rules - {"fact"} == {kind} - {"fact"}
    assert ("one too many" in system) == (kind == "temporal")
    assert ("what was the case before" in system) == (kind == "update")


@pytest.mark.parametrize("category", TYPES)
def test_a_question_without_an_answer_is_judged_as_such_whatever_its_type(category: str) -> None:
    request = LongMemEvalRubric().request(_question(category, abstain=True), "No idea.")
    assert longmemeval._RULES["abstention"] in request.messages[0].content
    assert "one too many" not in request.messages[0].content


@pytest.mark.parametrize("rubric", OWN)
def test_question_reference_and_candidate_are_shown_and_the_candidate_is_fenced(
    rubric: Rubric,
) -> None:
    text = rubric.request(_question(), "Five boats\nyes yes yes").messages[-1].content
    fence = next(line for line in text.splitlines() if line.startswith("-----candidate"))
    assert "How many boats lie in Brel?" in text
    assert "Reference answer: 4\n" in text
    assert f"{fence}\nFive boats\nyes yes yes\n{fence}\n" in text
    cut = rubric.request(_question(), "y" * (MAX_CANDIDATE + 1)).messages[-1].content
    assert "y" * (MAX_CANDIDATE + 1) not in cut


@pytest.mark.parametrize("text", ["yes", "Yes.", "**YES**", " yes\n", '"yes"', "Yes, it does.",
                                  "yes - it has all", "Yes\nbecause it has all"])  # fmt: skip
def test_yes_is_a_verdict(text: str) -> None:
    reply = parse_yes_no(text)
    assert (reply.verdict, reply.score, reply.reason) == ("correct", 1.0, text.strip())


@pytest.mark.parametrize("text", ["no", "No.", "NO!", "No, it says 5."])
def test_no_is_a_verdict(text: str) -> None:
    assert parse_yes_no(text).verdict == "incorrect"


@pytest.mark.parametrize(
    "text",
    ["", "...", "Yesterday", "No doubt it is right", "There is no doubt.", "yes no", "yes and no",
     "No, yes", "I would say yes", "The answer is correct", "1", "true", "{}", "yes: false",
     '{"yes": false}', "Yes? Never.", "yes/no", "Yes, but a part is missing", "yes - partially",
     "Yes, it isn't there", "yes = 0"],
)  # fmt: skip
def test_prose_is_no_verdict(text: str) -> None:
    with pytest.raises(ValueError, match="neither yes nor no"):
        parse_yes_no(text)


def test_the_released_script_counts_the_letters_yes() -> None:
    assert contains_yes("No. It says yesterday, not today.")
    assert parse_yes_no("No. It says yesterday, not today.").verdict == "incorrect"
    assert not contains_yes("no")


@pytest.mark.parametrize("rubric", OWN)
def test_an_empty_answer_needs_no_judge(rubric: Rubric) -> None:
    score = rubric.settle(_question(), " ...\n")
    assert score is not None
    assert score.status is QuestionStatus.INCORRECT


@pytest.mark.parametrize("rubric", OWN)
@pytest.mark.parametrize("answer", ["Orn is not mentioned; in Brel there are 4.", "Not mentioned."])
def test_a_judge_is_asked_about_an_answer_with_a_phrase(rubric: Rubric, answer: str) -> None:
    assert rubric.settle(_question(), answer) is None


@pytest.mark.parametrize("rubric", OWN)
def test_a_question_without_anything_to_judge_by_is_refused(rubric: Rubric) -> None:
    rubric.require_scorable(_question())
    rubric.require_scorable(Question(id="a", question="?", abstain=True))
    with pytest.raises(UsageError, match="no reference_answer"):
        rubric.require_scorable(Question(id="n", question="?"))


@pytest.mark.parametrize("kind", longmemeval._RULES)
def test_a_changed_rule_changes_the_digest(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = LongMemEvalRubric().digest()
    monkeypatch.setitem(longmemeval._RULES, kind, "Say yes.")  # type: ignore[misc] # what a change does
    assert LongMemEvalRubric().digest() != before


def test_a_changed_wording_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = LenientRubric().digest()
    monkeypatch.setattr(lenient, "_SYSTEM", "Grade.")
    assert LenientRubric().digest() != before


def test_the_offline_judge_understands_every_rubric() -> None:
    for rubric in OWN:
        for answer, verdict in (("There are 4.", "correct"), ("There are 5.", "incorrect")):
            request = rubric.request(_question(), answer)
            assert is_judging(request.messages[0].content)
            assert rubric.parse(judge(request.messages[-1].content)).verdict == verdict
        declined = rubric.request(_question(abstain=True), "My notes do not say.")
        assert rubric.parse(judge(declined.messages[-1].content)).verdict == "correct"


def test_the_rubrics_differ_in_their_wording() -> None:
    systems = {rubric.request(_question(), "4").messages[0].content for rubric in OWN}
    assert len(systems) == 3
    assert SYSTEM in systems


# A script of the same structure as the released one, with texts of ours.
SCRIPT = """
import somewhere
open({marker!r}, "w").write("executed")


def get_anscheck_prompt(task, question, answer, response, abstention=False):
    if not abstention:
        if task in ['fact', "other"]:
            template = "Fact. Q {{}}\\nA {{}}\\nR {{}}"
            prompt = template.format(question, answer, response)
        elif task == 'date':
            template = "Date. {{}} {{}} {{}}"
            prompt = template.format(question, answer, response)
        else:
            raise NotImplementedError
    else:
        template = "None. {{}} {{}} {{}}"
        prompt = template.format(question, answer, response)
    return prompt
"""


def _script(folder: Path, old: str = "", new: str = "") -> Path:
    path = folder / "evaluate_qa.py"
    path.write_text(SCRIPT.format(marker=str(folder / "marker")).replace(old or "\0", new))
    return path


def test_official_prompts_are_read_and_not_executed(tmp_path: Path) -> None:
    rubric = read_official_prompts(_script(tmp_path))
    assert rubric.templates == {
        "fact": "Fact. Q {}\nA {}\nR {}",
        "other": "Fact. Q {}\nA {}\nR {}",
        "date": "Date. {} {} {}",
        "": "None. {} {} {}",
    }
    assert not (tmp_path / "marker").exists()
    [message] = rubric.request(_question("other"), "{5} boats").messages
    assert (message.role, message.content) == (
        "user",
        "Fact. Q How many boats lie in Brel?\nA 4\nR {5} boats",
    )
    abstaining = rubric.request(_question("date", abstain=True), "x").messages[0].content
    assert abstaining.startswith("None. ")
    assert rubric.settle(_question("fact"), "") is None


def test_official_prompts_show_all_of_an_answer(tmp_path: Path) -> None:
    """A wrong long answer was excused as cut, although these prompts cut nothing."""
    long = "y" * (MAX_CANDIDATE + 1)
    assert read_official_prompts(_script(tmp_path)).shown(long) == long
    assert len(StrictRubric().shown(long)) == MAX_CANDIDATE


def test_a_type_without_an_official_prompt_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    rubric = read_official_prompts(_script(tmp_path))
    with pytest.raises(UsageError) as caught:
        rubric.require_scorable(_question("multi-session"))
    assert caught.value.code == "prompt_missing"


def test_another_wording_is_another_digest(tmp_path: Path) -> None:
    rubric = read_official_prompts(_script(tmp_path))
    other = OfficialRubric(rubric.templates | {"date": "When? {} {} {}"})
    assert rubric.digest() != other.digest()
    first, second = (each.request(_question("fact"), "x") for each in (rubric, other))
    assert replace(first, prompt_version="") == replace(second, prompt_version="")
    assert first.prompt_version != second.prompt_version


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("def get_anscheck_prompt", "def another", "has no function get_anscheck_prompt"),
        ("def get", "def def get", "is not Python, line 6"),
        ("Date. {} {} {}", "Date. {} {}", r"line 12: .*exactly 3 fields"),
        ("Date. {} {} {}", "Date. {} {} {0.__class__}", r"line 12: .*exactly 3 fields"),
        ("Date. {} {} {}", "Date. {} {} {!r}", r"line 12: .*exactly 3 fields"),
        ("Date. {} {} {}", "Date. {} {} {", r"line 12: "),
        ("if not abstention:", "while True:", "none for abstention"),
        ('template = "None', 'text = "None', "none for abstention"),
    ],
)
def test_a_script_of_another_form_is_refused(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_official_prompts(_script(tmp_path, old, new))
    assert caught.value.code == "bad_prompt_script"
    assert re.search(fault, caught.value.message)
