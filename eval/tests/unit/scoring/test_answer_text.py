"""LoCoMo's token F1, held to numbers of the released code, and BLEU-1."""

import pytest

from memconform.datasets.locomo import CATEGORIES
from memconform.datasets.question import Question
from memconform.scoring.answer_text import bleu1, locomo_f1, reference_text

# The last column was computed by eval_question_answering of task_eval/evaluation.py, unchanged.
OFFICIAL = [
    (1, "red kite, two oars, a map", "She packed the oars, a red kite and some maps",
     0.48888888888888893),
    (1, "Brel and Orn", "Orn, Brel", 0.6666666666666666),
    (1, "tide, moon", "nothing of that", 0.0),
    (2, "7 May 2023", "On the 7th of May, 2023.", 0.5),
    (2, "the week before 9 June", "the week before 9 June, and after", 0.888888888888889),
    (3, "Likely yes; she loves sailing", "Yes, likely", 1.0),
    (3, "Yes; no", "no", 0.0),
    (4, "The boats' sails were dyed and dried.", "boats sail dying dry", 0.6666666666666665),
    (4, "an old lighthouse keeper", "keepers of lighthouses, old ones", 0.7499999999999999),
    (4, "U.S. harbour-master", "the US harbourmaster", 1.0),
    (4, "cafe\u0301 and the sea", "caf\u00e9, sea", 0.5),
    (4, "the", "the", 0.0),
    (4, "12", "12", 1.0),
    (4, "skies, news, innings", "sky new inning", 0.6666666666666666),
    (4, "two two boats", "two boats boats", 0.6666666666666666),
    (4, "Brel", "", 0.0),
    (5, "x", "No information available.", 1.0),
    (5, "x", "That is Not Mentioned anywhere", 1.0),
    (5, "x", "She said no", 0.0),
]  # fmt: skip


def _question(category: int, reference: str) -> Question:
    return Question(id="q", question="?", category=CATEGORIES[category], answers=(reference,))


@pytest.mark.parametrize(("category", "reference", "answer", "official"), OFFICIAL)
def test_f1_is_that_of_the_released_code(
    category: int, reference: str, answer: str, official: float
) -> None:
    assert locomo_f1(_question(category, reference), answer) == official


def test_the_reference_of_an_open_domain_question_ends_at_its_first_semicolon() -> None:
    assert reference_text(_question(3, "Yes; she sails; often")) == "Yes"
    assert reference_text(_question(4, "Yes; she sails")) == "Yes; she sails"


def test_an_adversarial_question_needs_no_reference() -> None:
    question = Question(id="q", question="?", category="adversarial", abstain=True)
    assert locomo_f1(question, "It is not mentioned.") == 1.0
    assert locomo_f1(question, "In Brel.") == 0.0


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [
        ("two dogs", "two dogs", 1.0),
        # 2 of 5 tokens, the full stop among them; longer than the reference, so no penalty.
        ("She adopted two dogs.", "two dogs", 0.4),
        # Half as long as the reference: the penalty is e to the power of -1.
        ("Two", "two dogs", 0.36787944117144233),
        # A word counts as often as the reference has it.
        ("dogs dogs dogs dogs", "two dogs", 0.25),
        ("cats", "two dogs", 0.0),
        ("", "two dogs", 0.0),
        ("two dogs", "", 0.0),
    ],
)
def test_bleu1(answer: str, reference: str, value: float) -> None:
    assert bleu1(answer, reference) == pytest.approx(value)
