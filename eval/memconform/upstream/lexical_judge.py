"""The offline judge: compares words, so that judging can be tried without a model.

It accepts little: every number and name of the reference answer must be in the candidate. It takes
its prompt apart by the lines that the rubrics of `scoring.judge` write, and obeys nothing in it.
"""

import json
import re

from memconform.contract.terms import terms
from memconform.upstream.extractive import STOP_WORDS

_FENCE = re.compile(r"^(-----candidate [0-9a-f]{16}-----)\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"\AQuestion: (.*?)\n(?:Date of the question|Reference answer): ", re.DOTALL)
_REFERENCE = re.compile(
    r"^Reference answer: (.*?)\n(?=Rubric: |The notes do not hold |An answer that is only "
    r"|The candidate is cut|Candidate answer, between)",
    re.MULTILINE | re.DOTALL,
)
_ONE_WORD = "Reply with the single word yes or no."
_MEMORIES = re.compile(r"^(-----memories [0-9a-f]{16}-----)\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_FACTS = re.compile(r"^Required facts:\n((?:- .*\n)+)", re.MULTILINE)
_CORRECT_OR_WRONG = "Reply with the single word CORRECT or WRONG."
_ABSTAINS = "\nThe notes do not hold the information: declining is the correct answer.\n"
_MARKER = re.compile(r'^An answer that is only "(.*)" declines to answer\.$', re.MULTILINE)
_ABSTENTION = re.compile(r"\W*(?:no information available|not mentioned)\W*", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]+")
_DECLINES = re.compile(
    r"\b(?:no (?:information|record|mention|note)|not (?:mention|record|state|say|know|find|given)"
    r"|(?:do|does|did)(?: not|n't) (?:mention|say|state|hold|know|contain|include|record|have)"
    r"|(?:cannot|can't) (?:say|tell|answer|find)|unknown|nothing (?:in|about))",
    re.IGNORECASE,
)
_NEGATIONS = frozenset(
    (
        *("not", "no", "never", "none", "nobody", "nothing", "without", "neither", "nor"),
        *("against", "refused", "fail", "fails", "failed"),
    )
)
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?")
_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_ENOUGH = 0.8
"""Share of the reference's new words that a candidate must have."""


def is_judging(system: str) -> bool:
    """Whether a system message asks for a verdict."""
    is_word = _ONE_WORD in system or _CORRECT_OR_WRONG in system
    return is_word or ('"verdict"' in system and '"reason"' in system)


def judge(user: str) -> str:
    """The reply to a judge's prompt: JSON of reason, verdict and score, or one word."""
    if user.endswith(_CORRECT_OR_WRONG):
        return "CORRECT" if _has_facts(user) else "WRONG"
    reply = _judge(user)
    if user.endswith(_ONE_WORD):
        return "yes" if json.loads(reply)["verdict"] == "correct" else "no"
    return reply


def _judge(user: str) -> str:
    fenced, question, reference = (
        _FENCE.search(user),
        _QUESTION.search(user),
        _REFERENCE.search(user),
    )
    if fenced is None or question is None or reference is None:
        return _reply("the prompt has no question, reference answer and fenced candidate", 0.0)
    candidate = fenced[2]
    abstention = _abstention(user, fenced.start(), reference[1], candidate)
    if abstention is not None:
        return abstention
    known = set(terms(question[1]))
    wanted = set(terms(reference[1])) - known - STOP_WORDS or set(terms(reference[1])) - STOP_WORDS
    given = set(terms(candidate))
    essential = {number for number in _numbers(reference[1]) if number not in _numbers(question[1])}
    essential |= {t for name in _NAME.findall(reference[1]) for t in terms(name)} - known
    missing = essential - given - _numbers(candidate)
    if missing:
        return _reply(f"it lacks {', '.join(sorted(missing))}", 0.0)
    strange = _numbers(candidate) - _numbers(reference[1]) - _numbers(question[1])
    if strange:
        return _reply(f"it adds {', '.join(sorted(strange))}", 0.1)
    if bool(_NEGATIONS & given) != bool(_NEGATIONS & set(terms(reference[1]))):
        return _reply("one of the two is a negation", 0.1)
    # A number of one digit is no term: an answer that has it has everything.
    share = len(wanted & given) / len(wanted) if wanted else float(bool(essential))
    verdict = f"it has {len(wanted & given)} of {len(wanted)} words of the reference answer"
    return _reply(verdict, share if share >= _ENOUGH else share / 2)


def _abstention(user: str, end: int, reference: str, candidate: str) -> str | None:
    """The reply about a candidate that declines, or should; None if it has to be compared.

    What precedes `end` is not the candidate's.
    """
    marker = _MARKER.search(user, 0, end)
    is_marker = marker is not None and candidate.strip().lower() == marker[1].lower()
    if _ABSTAINS in user[:end]:
        declines = is_marker or _DECLINES.search(candidate) is not None
        return _reply("the candidate declines" if declines else "it does not decline", declines)
    said = candidate.strip(" .\n").lower()
    if (is_marker or _ABSTENTION.fullmatch(candidate)) and said not in reference.lower():
        return _reply("it declines", 0.0)
    return None


def _has_facts(user: str) -> bool:
    """Whether the returned memories have enough words of every required fact.

    What else they say does not matter: they are a list, and not an answer.
    """
    memories, facts = _MEMORIES.search(user), _FACTS.search(user)
    if memories is None or facts is None:
        return False
    given = set(terms(memories[2]))
    wanted = [set(terms(line)) - STOP_WORDS for line in facts[1].splitlines()]
    return all(len(each & given) >= _ENOUGH * len(each) for each in wanted)


def _numbers(text: str) -> set[str]:
    """The numbers of a text, in digits: `seven and 7.50` has 7 and 7.5."""
    found = {f"{float(match[0]):g}" for match in _NUMBER.finditer(text.replace(",", ""))}
    words = text.lower().split()
    return found | {str(_WORDS.index(word)) for word in words if word in _WORDS}


def _reply(reason: str, score: float) -> str:
    verdict = "correct" if score >= 0.5 else "incorrect"
    return json.dumps({"reason": reason, "verdict": verdict, "score": round(float(score), 3)})
