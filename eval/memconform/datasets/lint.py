"""Quality checks of a question set: faults, and the share that chance would pass."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from statistics import fmean

from memconform.contract.terms import terms
from memconform.datasets.expected_text import holds
from memconform.datasets.invisible import hidden_characters
from memconform.datasets.question import Question

RANDOM_DOCUMENTS = 5
"""The number of documents drawn by chance: the default top-k."""

_COMMON = 0.25
"""A term in more than this share of the documents does not discriminate."""
_SHARED_TERMS = 2


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A fault of one question."""

    question: str
    message: str


@dataclass(frozen=True, slots=True)
class LintReport:
    """The result of linting a question set."""

    questions: int
    documents: int
    retrievable: int
    """Questions that `search-retrieve-only` can pass: they expect a text, and do not abstain."""
    chance: float | None
    """Mean probability over the retrievable questions that 5 random documents contain what is
    needed, in [0, 1]; None without such questions, or without a document that has text."""
    highest_chance: float | None
    fewest_distractors: int | None
    """The lowest number of distractors of any question."""
    without_distractor: tuple[str, ...]
    """Questions without one, which even a superficial retrieval answers; no fault."""
    tags: dict[str, int]
    clusters: int | None
    """The number of clusters, with questions that have none as clusters of their own; None if no
    question has one."""
    faults: tuple[LintFinding, ...]


def lint_questions(questions: Iterable[Question], documents: Mapping[str, str]) -> LintReport:
    """Check questions against the documents (path → text) that they are about.

    A text is what a search can return of a document: empty if that is nothing, because no search
    returns such a document by chance either.

    A distractor is a document that is not evidence, contains no expected string, and shares two or
    more uncommon terms with the question: a superficial retrieval would return it.
    """
    faults: list[LintFinding] = []
    chances: list[float] = []
    distractors: list[int] = []
    without_distractor: list[str] = []
    tags: Counter[str] = Counter()
    clusters: Counter[str | None] = Counter()
    count = retrievable = 0
    searchable = sum(bool(text) for text in documents.values())
    uncommon = _uncommon_terms(documents)
    for question in questions:
        count += 1
        tags.update(question.tags)
        clusters[question.cluster] += 1
        holders = _holders(question, documents)
        # A search is never asked the others; as zeros they made a set look harder to guess.
        is_retrievable = bool(question.expected_substrings) and not question.abstain
        retrievable += is_retrievable
        faults += [
            LintFinding(question.id, message) for message in _faults(question, documents, holders)
        ]
        if documents:
            if searchable and is_retrievable:
                chances.append(chance(question, holders, searchable))
            distractor_count = _distractor_count(question, holders, uncommon)
            distractors.append(distractor_count)
            if not distractor_count:
                without_distractor.append(question.id)
    return LintReport(
        questions=count,
        documents=len(documents),
        retrievable=retrievable,
        chance=fmean(chances) if chances else None,
        highest_chance=max(chances, default=None),
        fewest_distractors=min(distractors, default=None),
        without_distractor=tuple(without_distractor),
        tags=dict(tags.most_common()),
        clusters=len(set(clusters) - {None}) + clusters[None] if set(clusters) - {None} else None,
        faults=tuple(faults),
    )


def chance(question: Question, holders: list[frozenset[str]], documents: int) -> float:
    """The probability that documents drawn without replacement contain what a question needs.

    `holders` gives, for each expected string, the documents in which it occurs. Computed by
    inclusion-exclusion over sets of strings that are all missing from the draw.
    """
    drawn = min(RANDOM_DOCUMENTS, documents)
    if not holders:
        return 0.0

    def none_of(paths: frozenset[str]) -> float:
        return float(comb(documents - len(paths), drawn) / comb(documents, drawn))

    if question.match == "any":
        return 1 - none_of(frozenset().union(*holders))
    return sum(
        (1 if size % 2 == 0 else -1) * none_of(frozenset().union(*subset))
        for size in range(len(holders) + 1)
        for subset in combinations(holders, size)
    )


def _holders(question: Question, documents: Mapping[str, str]) -> list[frozenset[str]]:
    return [
        frozenset(path for path, text in documents.items() if holds(question, expected, text))
        for expected in question.expected_substrings
    ]


def _faults(
    question: Question, documents: Mapping[str, str], holders: list[frozenset[str]]
) -> Iterable[str]:
    for expected in question.expected_substrings:
        if hidden := hidden_characters(expected):
            yield f"{expected!a} contains {', '.join(hidden)}, which no answer will contain"
        if holds(question, expected, question.question):
            yield f"{expected!r} is in the question itself"
    if not question.expected_substrings and not question.abstain:
        yield "nothing is expected, so no answer can pass"
    if question.abstain and (question.expected_substrings or question.gold):
        yield "abstains but has expected strings or evidence"
    if documents and question.gold:
        yield from _evidence_faults(question, documents, holders)


def _evidence_faults(
    question: Question, documents: Mapping[str, str], holders: list[frozenset[str]]
) -> Iterable[str]:
    evidence = frozenset(question.gold)
    everywhere = frozenset[str]().union(*holders)
    for path in sorted(evidence):
        if path not in documents:
            yield f"evidence {path} is not in the corpus"
        elif path not in everywhere:
            yield f"evidence {path} contains no expected string"
    for expected, paths in zip(question.expected_substrings, holders, strict=True):
        if question.match == "all" and not paths & evidence:
            yield f"{expected!r} is in none of the evidence"


def _uncommon_terms(documents: Mapping[str, str]) -> dict[str, frozenset[str]]:
    terms_by_path = {path: frozenset(terms(text)) for path, text in documents.items()}
    frequency = Counter(term for own in terms_by_path.values() for term in own)
    common = {term for term, n in frequency.items() if n > _COMMON * len(documents)}
    return {path: own - common for path, own in terms_by_path.items()}


def _distractor_count(
    question: Question, holders: list[frozenset[str]], uncommon: dict[str, frozenset[str]]
) -> int:
    query_terms = frozenset(terms(question.question))
    excluded = frozenset(question.gold).union(*holders)
    return sum(
        len(query_terms & own) >= _SHARED_TERMS
        for path, own in uncommon.items()
        if path not in excluded
    )
