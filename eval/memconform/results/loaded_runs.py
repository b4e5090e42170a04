"""Loading results for a comparison, and checking that they are comparable."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from memconform.contract.wire import UNCONFIRMED
from memconform.errors import UsageError, nearest
from memconform.runs.results import QuestionResult, RunSummary
from memconform.runs.stored_run import read_questions, read_summary
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.stored_figures import ExactMean, is_same_figure
from memconform.storage.folders import ROW_MARK, find_result
from memconform.storage.result_file import require_result_of_run
from memconform.validation_faults import first_fault

_METHOD_SETTINGS = (
    *("scenario", "mode", "scorer", "top_k", "candidate_k", "rerank_top_n"),
    *("allow_fallback", "repeat", "seeding", "upstream", "variables", "contract", "judge"),
    "reader",
)
"""Settings that decide how questions are asked and scored. Not `rank_by`: it decides whether a
ranking whose scores rise is measured, and no ranking is sorted again."""
_SELECTION_SETTINGS = ("dataset_sha256", "questions", "rows")
"""Settings that decide which questions are asked."""
COMPARED_SETTINGS = (*_SELECTION_SETTINGS, *_METHOD_SETTINGS)
"""Settings in which runs must agree to be compared."""
_QUOTES = ("'", '"')


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A result with its summary; the questions of a run are read on demand."""

    name: str
    """The SDK's name, or the run's id if several runs are of one SDK."""
    path: Path
    summary: RunSummary
    translated: tuple[QuestionResult, ...] | None = None
    """The questions of a result that another verb than `run` wrote; None if `path` has them."""
    subject: str = ""
    """What selects it behind the path, if the file has several."""
    is_control: bool = False
    """Whether it is an arm to compare systems with, for which none retrieved: its wrong answers are
    not failures."""

    @property
    def reference(self) -> str:
        """What names it on a command line."""
        return f"{self.path}{ROW_MARK}{self.subject}" if self.subject else str(self.path)

    def questions(self) -> Iterator[QuestionResult]:
        """Read every question; after an incident none counts as measured.

        Raises:
            UsageError: if the file is unreadable or truncated (`result_unreadable`), or if its
                questions contradict its summary (`unlike_runs`), which means that it was edited.
        """
        seen: set[str] = set()
        counts: Counter[QuestionStatus] = Counter()
        mean_score = ExactMean()
        incident = self.summary.incident
        try:
            stored = read_questions(self.path) if self.translated is None else self.translated
            for question in stored:
                if question.id in seen:
                    raise _unlike(f"{self.path} contains {question.id!r} twice")
                seen.add(question.id)
                counts[question.verdict] += 1
                if question.score is not None:
                    mean_score.add(question.score)
                yield question if incident is None else question.voided(incident)
        except ValidationError as error:
            raise _unreadable(
                self.path, f"question {len(seen) + 1}: {first_fault(error)}"
            ) from error
        except (ValueError, OSError) as error:
            raise _unreadable(self.path) from error
        asked = len(seen) - counts[QuestionStatus.NOT_APPLICABLE]
        for what, reported, actual in (
            *((end.value, self.summary.counts.get(end, 0), counts[end]) for end in QuestionStatus),
            ("questions", self.summary.total, asked),
            ("passed", self.summary.passed, counts[QuestionStatus.CORRECT]),
        ):
            if reported != actual:
                raise _unlike(f"{self.path} reports {reported} {what} but contains {actual}")
        mean = mean_score.value if incident is None else None
        if not is_same_figure(self.summary.mean_score or 0.0, mean or 0.0):
            raise _unlike(
                f"{self.path} reports mean_score {self.summary.mean_score}, but its questions"
                f" give {mean}"
            )


def load_runs(references: Sequence[str], output: Path) -> list[LoadedRun]:
    """Load results of `run` given by path, by a run's folder, or by a run's id below `output`.

    Raises:
        UsageError: if a run is missing (`unknown_run`), its file is not a result
            (`result_unreadable`), or it was given twice (`one_run_twice`).
    """
    return name_runs([read_run(find_result(output, reference)) for reference in references])


def read_run(path: Path) -> LoadedRun:
    """Read the summary of a run, which is named after its SDK.

    Raises:
        UsageError: if the file is not the result of a run (`result_unreadable`).
    """
    require_result_of_run(path)
    try:
        summary = read_summary(path)
    except (ValidationError, ValueError, OSError, RecursionError) as error:
        raise _unreadable(path) from error
    if "schema_version" not in summary.model_fields_set or not _fits_its_settings(summary):
        raise _unreadable(path)
    return LoadedRun(summary.sdk, path, summary)


def name_runs(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    """Name runs by their SDKs, or by their ids if several are of one SDK.

    Raises:
        UsageError: if a run was given twice (`one_run_twice`).
    """
    names = [run.summary.sdk for run in runs]
    ids = [run.summary.run_id for run in runs]
    for run_id in ids:
        if ids.count(run_id) > 1:
            raise UsageError(
                f"run {run_id} was given twice",
                code="one_run_twice",
                hint="name each run once",
            )
    return [
        replace(run, name=sdk if names.count(sdk) == 1 else run_id)
        for run, sdk, run_id in zip(runs, names, ids, strict=True)
    ]


def incident_lines(runs: Sequence[LoadedRun]) -> list[str]:
    """One line for each run that an incident ended, and whose scores are not compared."""
    return [
        f"{run.name}: not measured: {incident.code}: {incident.message}"
        for run in runs
        if (incident := run.summary.incident) is not None
    ]


def _fits_its_settings(summary: RunSummary) -> bool:
    settings = summary.provenance.settings
    keys = ("scenario", "mode", "scorer", "dataset")
    # The settings name a brain only if the user chose one.
    is_same_brain = settings.get("brain") in (None, summary.brain)
    return is_same_brain and all(settings.get(key) == getattr(summary, key) for key in keys)


def _unreadable(path: Path, excerpt: str = "") -> UsageError:
    return UsageError(
        f"{path} is not the result of a run",
        code="result_unreadable",
        hint="give a result that `run` wrote, results/<date>/<sdk>.json, or a run's folder or id",
        excerpt=excerpt,
    )


def require_comparable(runs: Sequence[LoadedRun], *, selections: bool = True) -> None:
    """Check that runs have the same settings, and with `selections` also the same questions.

    Raises:
        UsageError: naming the first setting that differs (`unlike_runs`).
    """
    first = runs[0]
    ours = first.summary.provenance.settings
    for other in runs[1:]:
        _require_same_confirmation(first, other)
        theirs = other.summary.provenance.settings
        for key in (*(_SELECTION_SETTINGS if selections else ()), *_METHOD_SETTINGS):
            mine, yours = (table.get(key) for table in (ours, theirs))
            if key == "reader" and None in (mine, yours):
                # Files of answers do not say what wrote them.
                continue
            several = first.summary.sdk != other.summary.sdk
            if several and isinstance(mine, dict) and isinstance(yours, dict):
                # Besides the variables that all SDKs know, each has some of its own.
                shared = sorted(mine.keys() & yours.keys())
                mine, yours = ({name: table[name] for name in shared} for table in (mine, yours))
            if mine != yours:
                difference = f"differ in {key}: {_short(mine)} and {_short(yours)}"
                if key == "dataset_sha256":
                    difference = "used different datasets"
                raise UsageError(
                    f"{first.name!r} and {other.name!r} {difference}",
                    code="unlike_runs",
                    hint="compare runs of the same dataset, selection and settings",
                )


def method_lines(runs: Sequence[LoadedRun]) -> list[str]:
    """How each run was made, if that differs in what comparable runs may differ in."""
    methods = [(run.name, run.summary.provenance.settings.get("method")) for run in runs]
    if all(method == methods[0][1] for _, method in methods):
        return []
    return [
        f"{name}: {', '.join(f'{key} {each}' for key, each in method.items() if each is not None)}"
        for name, method in methods
        if isinstance(method, dict)
    ]


def _require_same_confirmation(first: LoadedRun, other: LoadedRun) -> None:
    """Check that modes are confirmed in both runs or in neither (docs/DIALECTS.md).

    Raises:
        UsageError: naming the run whose modes no trace confirms (`unlike_runs`).
    """
    unconfirmed = [UNCONFIRMED in run.summary.served_modes for run in (first, other)]
    confirmed = [bool(set(run.summary.served_modes) - {UNCONFIRMED}) for run in (first, other)]
    for run, both in zip(
        (first, other), map(all, zip(unconfirmed, confirmed, strict=True)), strict=True
    ):
        if both:
            raise UsageError(
                f"the mode of {run.name!r} is confirmed for a part of its questions only",
                code="unlike_runs",
                hint="compare runs that retrieved every question in the same way",
            )
    if unconfirmed[0] != unconfirmed[1]:
        names = (first.name, other.name) if unconfirmed[0] else (other.name, first.name)
        raise UsageError(
            f"no trace confirms the mode in which {names[0]!r} retrieved, and {names[1]!r} is"
            " confirmed",
            code="unlike_runs",
            hint="compare runs that confirm their modes, such as search-retrieve-only, or runs that"
            " do not",
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…{text[0] if text[0] in _QUOTES else ''}"


def aligned(runs: Sequence[LoadedRun]) -> Iterator[tuple[QuestionResult, ...]]:
    """Rows of the same question's results in every run, in the order of the dataset.

    Raises:
        UsageError: if the files do not contain the same questions (`unlike_runs`), and as
            `LoadedRun.questions` does.
    """
    rows = zip_longest(*(run.questions() for run in runs))
    for count, row in enumerate(rows, 1):
        ids = {None if result is None else result.id for result in row}
        if len(ids) > 1:
            raise _unlike(f"question {count}: {', '.join(sorted(map(repr, ids)))}")
        # Results of earlier versions have no texts, nor have questions without an answer.
        if len({result.question for result in row} - {""}) > 1:
            raise _unlike(f"the text of question {row[0].id!r} differs")
        if len({result.cluster for result in row}) > 1:
            raise _unlike(f"the cluster of question {row[0].id!r} differs")
        if len({result.verdict.expected for result in row}) > 1:
            raise _unlike(f"question {row[0].id!r} is expected in some of the runs only")
        yield row


def _unlike(excerpt: str) -> UsageError:
    return UsageError(
        "the results do not contain the same questions",
        code="unlike_runs",
        hint="check whether a file was edited or truncated",
        excerpt=excerpt,
    )


def question_of(run: LoadedRun, question: str) -> QuestionResult:
    """The result of one question.

    Raises:
        UsageError: if the run has no question with that id (`unknown_question`).
    """
    ids = []
    for result in run.questions():
        if result.id == question:
            return result
        ids.append(result.id)
    raise UsageError(
        f"{run.path} has no question {question!r}",
        code="unknown_question",
        hint=nearest(question, ids) or "the ids are listed in the file, below `questions`",
    )
