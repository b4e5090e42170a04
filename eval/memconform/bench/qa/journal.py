"""Reading the journal of an earlier scoring, to continue it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from memconform.bench.qa.records import Judgement, QaJournalHeader, QaSettings
from memconform.errors import UsageError
from memconform.records import Record
from memconform.storage.append_only import whole_lines

_Record = TypeVar("_Record", bound=Record)


def read_judgements(path: Path, settings: QaSettings) -> dict[tuple[str, str], Judgement]:
    """The measured judgements of an earlier scoring, by rubric and question.

    Those that failed are absent, so that they are asked for again. A last line without a line end
    is dropped: the program was killed while writing it.

    Raises:
        UsageError: if the file is not such a journal (`journal_unreadable`), or was written with
            other settings (`resume_mismatch`).
    """
    records = read_journal(
        path,
        Judgement,
        settings,
        lambda line: QaJournalHeader.model_validate_json(line).settings,
        verbs="`score` of such answers",
        same="the data, the hypotheses, --errata, --partial, the rubrics with their prompts, and"
        " the judges",
    )
    return {(each.rubric, each.question): each for each in records if each.status.measured}


def read_journal(
    path: Path,
    record: type[_Record],
    settings: Record,
    settings_of: Callable[[bytes], Record],
    *,
    verbs: str,
    same: str,
) -> list[_Record]:
    """The records between a journal's header and its footer.

    Args:
        path: of the journal.
        record: the model of its lines.
        settings: those of the scoring that continues.
        settings_of: reads the settings from the header.
        verbs: the commands that write such journals.
        same: what the settings consist of.

    Raises:
        UsageError: as `read_judgements`.
    """
    records: list[_Record] = []
    try:
        lines = whole_lines(path)
        earlier = settings_of(next(lines)[1]).model_dump()
        records += [record.model_validate_json(line) for _, line in lines]
    except (OSError, ValidationError, StopIteration) as error:
        raise UsageError(
            f"{path} is not the journal of scored answers",
            code="journal_unreadable",
            hint=f"give a folder that {verbs} made below results/runs, or start anew without"
            " --resume",
        ) from error
    now = settings.model_dump()
    if differing := [name for name in now if earlier[name] != now[name]]:
        raise UsageError(
            f"{path.parent} was scored with different settings: {', '.join(differing)}",
            code="resume_mismatch",
            hint=f"{same} must be the same",
        )
    return records
