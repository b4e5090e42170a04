"""Reading the journal of an earlier scoring, to continue it."""

from pathlib import Path

from pydantic import ValidationError

from memconform.bench.qa.records import JournalHeader, Judgement, QaSettings
from memconform.errors import UsageError

_FOOTER = b'{"stage": "footer"'


def read_judgements(path: Path, settings: QaSettings) -> dict[tuple[str, str], Judgement]:
    """The measured judgements of an earlier scoring, by rubric and question.

    Those that failed are absent, so that they are asked for again. A last line without a line end
    is dropped: the program was killed while writing it.

    Raises:
        UsageError: if the file is not such a journal (`journal_unreadable`), or was written with
            other settings (`resume_mismatch`).
    """
    judgements = {}
    try:
        with path.open("rb") as file:
            _require_same_settings(path, JournalHeader.model_validate_json(next(file)), settings)
            for line in file:
                if not line.endswith(b"\n") or line.startswith(_FOOTER):
                    break
                judgement = Judgement.model_validate_json(line)
                if judgement.status.measured:
                    judgements[judgement.rubric, judgement.question] = judgement
    except (OSError, ValidationError, StopIteration) as error:
        raise UsageError(
            f"{path} is not the journal of scored answers",
            code="journal_unreadable",
            hint="give a folder that `judge longmemeval` or `judge locomo` made below"
            " results/runs, or start anew without --resume",
        ) from error
    return judgements


def _require_same_settings(path: Path, header: JournalHeader, settings: QaSettings) -> None:
    earlier, now = header.settings.model_dump(), settings.model_dump()
    differing = [name for name in now if earlier[name] != now[name]]
    if differing:
        raise UsageError(
            f"{path.parent} was scored with different settings: {', '.join(differing)}",
            code="resume_mismatch",
            hint="the data, the hypotheses, --errata, --partial, the rubrics with their prompts,"
            " and the judges must be the same",
        )
