"""`--errata`: which errata apply to a benchmark."""

from pathlib import Path

from memconform.bench.plan import BenchmarkScan
from memconform.daemons.sdk_runner import Progress
from memconform.datasets.answer_keys import AnswerKey
from memconform.datasets.benchmarks import Benchmark
from memconform.datasets.errata import (
    Errata,
    read_errata,
    require_known_gold,
    require_known_ids,
    shipped_errata,
    shipped_errata_names,
)
from memconform.datasets.sources import pinned_as, pinned_part
from memconform.datasets.wmb import WmbKey

NONE = "none"


def candidate_errata(flag: str | None, format_name: str) -> Errata | None:
    """The errata that a flag names: `none`, a shipped name or a path; by default the format's own.

    Raises:
        UsageError: if the file is invalid.
    """
    if flag == NONE:
        return None
    shipped = shipped_errata_names()
    if flag is None:
        return shipped_errata(format_name) if format_name in shipped else None
    return shipped_errata(flag) if flag in shipped else read_errata(Path(flag))


def disputed_answers(key: AnswerKey, flag: str | None) -> frozenset[str] | None:
    """The questions whose reference answer is disputed; None without errata that apply.

    By default those that ship apply, to the public files that they describe.

    Raises:
        UsageError: if the file is invalid, or names an unknown question (`unknown_question`).
    """
    errata = candidate_errata(flag, key.suite)
    if errata is None or (flag is None and pinned_as(key.sha256) not in errata.applies_to):
        return None
    require_known_ids(errata, key.questions)
    return errata.of(key.questions).disputed


def omitted_answers(key: WmbKey, flag: str | None) -> Errata | None:
    """The errata of the questions that a score without disputed ones omits; None if none apply.

    By default those that ship apply, to the public questions.

    Raises:
        UsageError: as `disputed_answers`.
    """
    errata = candidate_errata(flag, "wmb")
    if errata is None or (flag is None and pinned_part(key.sha256) not in errata.applies_to):
        return None
    require_known_ids(errata, key.questions)
    return errata.of(errata.disputed | errata.unjudgeable).of(key.questions)


def corrected_items(errata: Errata | None, benchmark: Benchmark) -> dict[str, tuple[str, ...]]:
    """The corrected gold as items of the benchmark at its level, by query id."""
    corrected = {} if errata is None else errata.corrected_gold
    return {query: benchmark.items_of(gold) for query, gold in corrected.items()}


def applied_errata(
    flag: str | None, errata: Errata | None, survey: BenchmarkScan, progress: Progress
) -> Errata | None:
    """The errata of the benchmark's questions, or None if there are none to apply.

    By default, errata apply only to the public files that they describe.

    Raises:
        UsageError: if the benchmark has no such question (`unknown_question`) or evidence
            (`dataset_invalid`).
    """
    if errata is None:
        return None
    if flag is None and survey.pinned not in errata.applies_to:
        progress(
            f"errata {errata.name} are not applied, because this is not one of the public files"
            f" that they describe; --errata {errata.name} applies them"
        )
        return None
    ids = {*survey.queries, *(entry.id for entry in survey.dropped)}
    require_known_ids(errata, ids)
    require_known_gold(errata, survey.unknown_gold)
    return errata.of(survey.queries)
