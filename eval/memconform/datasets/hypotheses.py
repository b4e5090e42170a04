"""Stored answers in LongMemEval's format: hypotheses, and the log of their evaluation.

A hypothesis is `{"question_id": …, "hypothesis": …}`, one a line or all in one JSON array. A log
adds `"autoeval_label": {"model": …, "label": true}` to each. Other keys are ignored, as the
released scripts ignore them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memconform.contract.strict_json import decode
from memconform.datasets.files import PieceReader, lines, unfit
from memconform.datasets.json_array import elements
from memconform.datasets.reasoning_blocks import strip_reasoning
from memconform.datasets.rows import reason_of, text

_HINT = 'write one {"question_id": "…", "hypothesis": "…"} a line'
_LOG_HINT = "give the log that `memconform score --log` or evaluate_qa.py writes"


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Answers by question id, in the order of their file."""

    path: Path
    answers: dict[str, str]
    repeated: list[str] = field(default_factory=list)
    """Ids that occur again with the same answer; each counts once."""
    sha256: str = ""
    prediction: str | None = None
    """The key that they were read from, in a file of LoCoMo's own code."""
    reasoning: list[str] = field(default_factory=list)
    """Ids of answers that contain, or contained, a block of reasoning."""
    is_stripped: bool = False
    """Whether their reasoning was removed."""

    def without_reasoning(self) -> "Hypotheses":
        """The answers without their blocks of reasoning."""
        stripped = {name: strip_reasoning(self.answers[name]) for name in self.reasoning}
        return replace(self, answers=self.answers | stripped, is_stripped=True)


@dataclass(frozen=True, slots=True)
class LabelLog:
    """The labels of an evaluation, by question id."""

    path: Path
    labels: dict[str, bool]
    models: list[str]
    """The models that judged."""


def read_hypotheses(path: Path) -> Hypotheses:
    """Read stored answers.

    Raises:
        UsageError: `dataset_invalid`, naming the line, for a row without a text, or for an id that
            has two different answers; `dataset_unreadable`, `dataset_too_large`.
    """
    with PieceReader(path) as source:
        hypotheses = collect_answers(path, _answers(source), _HINT)
        return replace(hypotheses, sha256=source.sha256)


def _answers(source: PieceReader) -> Iterator[tuple[str, str, str]]:
    for place, row in _rows(source):
        [name, answer] = _texts(source.path, place, row, _HINT, "question_id", "hypothesis")
        yield place, name, answer


def collect_answers(
    path: Path,
    rows: Iterable[tuple[str, str, str]],
    hint: str,
    sha256: str = "",
    prediction: str | None = None,
) -> Hypotheses:
    """The answers in rows of a place in the file, a question id and an answer.

    Raises:
        UsageError: as `read_hypotheses`.
    """
    answers: dict[str, str] = {}
    places: dict[str, str] = {}
    repeated: list[str] = []
    for place, name, answer in rows:
        if answers.setdefault(name, answer) != answer:
            raise unfit(
                path,
                f"{place}: {name!r} has another answer than on {places[name]}",
                "keep one answer for each question",
            )
        if name in places:
            repeated.append(name)
        places.setdefault(name, place)
    if not answers:
        raise unfit(path, "holds no answer", hint)
    reasoning = [name for name, answer in answers.items() if strip_reasoning(answer) != answer]
    return Hypotheses(path, answers, repeated, sha256, prediction, reasoning)


def read_label_log(path: Path) -> LabelLog:
    """Read the log of an evaluation.

    Raises:
        UsageError: `dataset_invalid`, naming the line, for a row without a label, or an id that
            occurs twice; `dataset_unreadable`, `dataset_too_large`.
    """
    labels: dict[str, bool] = {}
    models: dict[str, None] = {}
    with PieceReader(path) as source:
        for place, row in _rows(source):
            [name] = _texts(path, place, row, _LOG_HINT, "question_id")
            label = row.get("autoeval_label")
            if not isinstance(label, dict) or not isinstance(label.get("label"), bool):
                raise unfit(path, f"{place}: {name!r} has no autoeval_label", _LOG_HINT)
            if name in labels:
                raise unfit(path, f"{place}: {name!r} occurs twice", "keep one label for each")
            labels[name] = label["label"]
            [model] = _texts(path, place, label, _LOG_HINT, "model")
            models[model] = None
    if not labels:
        raise unfit(path, "holds no label", _LOG_HINT)
    return LabelLog(path, labels, list(models))


def _rows(source: PieceReader) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row with its place in the file, such as `line 3`."""
    with PieceReader(source.path) as head:
        is_array = head.read().lstrip()[:1] == b"["
    if is_array:
        for number, element in enumerate(elements(source)):
            yield f"element {number}", _object(source.path, f"element {number}", element)
        return
    for number, line in enumerate(lines(source), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            row = decode(line.decode())
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            raise unfit(source.path, f"{place} is not UTF-8", _HINT) from error
        except UnicodeEncodeError as error:
            raise unfit(source.path, f"{place} contains an unpaired surrogate", _HINT) from error
        except ValueError as error:
            raise unfit(source.path, f"{place}: {error}", _HINT) from error
        yield place, _object(source.path, place, row)


def _object(path: Path, place: str, row: object) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise unfit(path, f"{place} is not a JSON object", _HINT)
    return row


def _texts(path: Path, place: str, row: dict[str, Any], hint: str, *keys: str) -> list[str]:
    try:
        return [text(row, key) for key in keys]
    except (KeyError, TypeError) as error:
        raise unfit(path, f"{place}: {reason_of(error)}", hint) from error
