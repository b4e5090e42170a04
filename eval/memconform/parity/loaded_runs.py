"""The results that are compared, and whether they can be."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from memconform.errors import UsageError, nearest
from memconform.runs.reading import read_questions, read_summary
from memconform.runs.results import QuestionResult, RunSummary
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import find_result
from memconform.validation import first_fault

_SETTLED = (
    *("scenario", "mode", "scorer", "top_k", "candidate_k", "rerank_top_n"),
    *("allow_fallback", "repeat", "seeding", "upstream", "variables", "contract"),
)
"""Settings that decide what is asked, and how it is scored."""
_SELECTED = ("dataset_sha256", "questions", "rows")
"""Settings that say which questions are put."""
_ROUNDING = 1e-9
"""How far a mean may be from the one that is computed again."""


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """One run."""

    name: str
    """The SDK's; the run's id where several runs are of one SDK."""
    path: Path
    summary: RunSummary

    def questions(self) -> Iterator[QuestionResult]:
        """Every question once, none of them measured where an incident ended the run.

        Raises:
            UsageError: where the file is torn, or was edited.
        """
        seen: set[str] = set()
        counts: Counter[QuestionStatus] = Counter()
        total = 0.0
        incident = self.summary.incident
        try:
            for question in read_questions(self.path):
                if question.id in seen:
                    raise _unlike(f"{self.path} holds {question.id!r} twice")
                seen.add(question.id)
                counts[question.verdict] += 1
                total += question.score or 0.0
                yield question if incident is None else question.voided(incident)
        except ValidationError as error:
            raise _unreadable(
                self.path, f"question {len(seen) + 1}: {first_fault(error)}"
            ) from error
        except (ValueError, OSError) as error:
            raise _unreadable(self.path) from error
        asked = len(seen) - counts[QuestionStatus.NOT_APPLICABLE]
        for what, told, held in (
            *((end.value, self.summary.counts.get(end, 0), counts[end]) for end in QuestionStatus),
            ("questions", self.summary.total, asked),
            ("passed", self.summary.passed, counts[QuestionStatus.CORRECT]),
        ):
            if told != held:
                raise _unlike(f"{self.path} tells {told} {what}, and holds {held}")
        measured = sum(count for verdict, count in counts.items() if verdict.measured)
        mean = total / measured if measured and incident is None else 0.0
        if abs((self.summary.mean_score or 0.0) - mean) > _ROUNDING:
            raise _unlike(f"{self.path} tells mean_score {self.summary.mean_score}, not {mean}")


def load_runs(references: Sequence[str], output: Path) -> list[LoadedRun]:
    """Results by path, by a run's folder, or by a run's id below `output`.

    Raises:
        UsageError: where one is not there, or no result, or there twice.
    """
    found: list[tuple[Path, RunSummary]] = []
    for reference in references:
        path = find_result(output, reference)
        try:
            summary = read_summary(path)
            is_versioned = "schema_version" in summary.model_fields_set
            if not is_versioned or not _fits_its_settings(summary):
                raise _unreadable(path)
            found.append((path, summary))
        except (ValidationError, ValueError, OSError, RecursionError) as error:
            raise _unreadable(path) from error
    names = [summary.sdk for _, summary in found]
    ids = [summary.run_id for _, summary in found]
    for run in ids:
        if ids.count(run) > 1:
            raise UsageError(
                f"run {run} was given twice",
                code="one_run_twice",
                hint="name each run once",
            )
    return [LoadedRun(s.sdk if names.count(s.sdk) == 1 else s.run_id, path, s) for path, s in found]


def incident_lines(sides: Sequence[LoadedRun]) -> list[str]:
    """Which runs have no score that anything is compared with, and why."""
    return [
        f"{side.name}: not measured: {incident.code}: {incident.message}"
        for side in sides
        if (incident := side.summary.incident) is not None
    ]


def _fits_its_settings(summary: RunSummary) -> bool:
    settings = summary.provenance.settings
    told = ("scenario", "mode", "scorer", "dataset")
    # A brain of the run's own has no name in its settings.
    brain = settings.get("brain") in (None, summary.brain)
    return brain and all(settings.get(key) == getattr(summary, key) for key in told)


def _unreadable(path: Path, excerpt: str = "") -> UsageError:
    return UsageError(
        f"{path} is not a result of a run",
        code="result_unreadable",
        hint="give what `run` wrote: results/<date>/<sdk>.json, a run's folder or id",
        excerpt=excerpt,
    )


def require_comparable(sides: Sequence[LoadedRun], *, selections: bool = True) -> None:
    """Raise UsageError where runs asked different things; it names the first difference.

    With `selections` also where they put different questions.
    """
    first = sides[0]
    ours = first.summary.provenance.settings
    for other in sides[1:]:
        theirs = other.summary.provenance.settings
        for key in (*(_SELECTED if selections else ()), *_SETTLED):
            mine, yours = ours.get(key), theirs.get(key)
            several = first.summary.sdk != other.summary.sdk
            if several and isinstance(mine, dict) and isinstance(yours, dict):
                # SDKs take variables of their own besides those that all of them know.
                shared = sorted(mine.keys() & yours.keys())
                mine, yours = ({name: side[name] for name in shared} for side in (mine, yours))
            if mine != yours:
                raise UsageError(
                    f"{other.name!r} differs from {first.name!r} in {key}:"
                    f" {_short(yours)}, not {_short(mine)}",
                    code="unlike_runs",
                    hint="compare runs of the same dataset, selection and settings",
                )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def aligned(sides: Sequence[LoadedRun]) -> Iterator[tuple[QuestionResult, ...]]:
    """The same question of every run, in the order of the dataset.

    Raises:
        UsageError: where a file lacks questions, or has others.
    """
    rows = zip_longest(*(side.questions() for side in sides))
    for count, row in enumerate(rows, 1):
        ids = {None if result is None else result.id for result in row}
        if len(ids) > 1:
            raise _unlike(f"question {count}: {', '.join(sorted(map(repr, ids)))}")
        if len({result.question for result in row}) > 1:
            raise _unlike(f"question {row[0].id!r} has another text")
        if len({result.verdict.expected for result in row}) > 1:
            raise _unlike(f"question {row[0].id!r} is expected of some of them alone")
        yield row


def _unlike(excerpt: str) -> UsageError:
    return UsageError(
        "the results do not hold the same questions",
        code="unlike_runs",
        hint="was a file edited, or cut off?",
        excerpt=excerpt,
    )


def question_of(side: LoadedRun, question: str) -> QuestionResult:
    """One question of a run; raises UsageError where it has none of that id."""
    ids = []
    for result in side.questions():
        if result.id == question:
            return result
        ids.append(result.id)
    raise UsageError(
        f"{side.path} has no question {question!r}",
        code="unknown_question",
        hint=nearest(question, ids) or "its ids are in the file, below `questions`",
    )
