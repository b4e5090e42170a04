"""Stored answers to LoCoMo in the forms that others write, and to which questions they belong.

LoCoMo's released code (`task_eval/`) adds a key `<model>_prediction` to each row of `qa`, with its
scores, in a file for each conversation or in an array of all. The evaluation of mem0, which several
vendors have taken over, maps each conversation to a list of `{question, answer, category, response,
…}`; so does the file of its scores, which lacks category 5.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memconform.contract.strict_json import decode
from memconform.datasets.answer_keys import AnswerKey
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.hypotheses import Hypotheses, collect_answers, read_hypotheses
from memconform.datasets.locomo import CATEGORIES
from memconform.datasets.rows import answer_text, reason_of, text
from memconform.errors import UsageError

_PREDICTION: Final = "_prediction"
_HINT: Final = (
    "give JSON lines of question_id and hypothesis, LoCoMo's own predictions, or results of mem0's"
    " evaluation (docs/QA.md)"
)
_HEAD: Final = 1 << 16
_NUMBER: Final = re.compile(r"(?:.*\D)?(\d+)", re.DOTALL)
_SHOWN_CHARACTERS: Final = 60

_Rows = list[tuple[str, dict[str, Any]]]
"""The rows of a conversation, each with its place in the file."""


def read_locomo_answers(path: Path, key: AnswerKey, prediction: str | None = None) -> Hypotheses:
    """Read stored answers to LoCoMo in any of the forms.

    Rows of a question and its answer are matched by conversation and text: the questions of a
    conversation repeat, and files may lack some. Those that match none keep a name of their own.

    Args:
        path: the file.
        key: the questions.
        prediction: the key `…_prediction` to read, or the name of its model; only needed if the
            file has several.

    Raises:
        UsageError: as `read_hypotheses`; `bad_option` for a prediction that the file does not have,
            or if it has several and none is named.
    """
    conversations = _conversations(path)
    if conversations is None:
        if prediction is not None:
            raise _no_prediction(path, prediction, ())
        return read_hypotheses(path)
    groups, sha256 = conversations
    rows = [row for _, group in groups for _, row in group]
    answer_key = "response"
    if not any("response" in row for row in rows):
        answer_key = _prediction_key(path, rows, prediction)
    elif prediction is not None:
        raise _no_prediction(path, prediction, ())
    matcher = _Matcher(key)
    named = (
        (place, name, answer)
        for conversation, group in groups
        for place, name, answer in _answers(path, matcher, conversation, group, answer_key)
    )
    is_named = answer_key != "response"
    return collect_answers(path, named, _HINT, sha256, answer_key if is_named else None)


def _conversations(path: Path) -> tuple[list[tuple[str, _Rows]], str] | None:
    """The rows of each conversation, and the file's digest; None for JSON lines of hypotheses."""
    with PieceReader(path) as source:
        head = source.read(_HEAD).lstrip()
    first_line = head.partition(b"\n")[0]
    if not head.startswith((b"{", b"[")) or (head.startswith(b"{") and _is_object(first_line)):
        return None
    with PieceReader(path) as source:
        content = source.rest()
        sha256 = source.sha256
    try:
        value = decode(content.decode())
    except UnicodeDecodeError as error:
        raise unfit(path, "is not UTF-8", _HINT) from error
    except ValueError as error:
        if first_line.strip() == b"{":
            raise unfit(path, f"is not valid JSON: {error}", _HINT) from error
        # The reader of lines and arrays names the place of the fault.
        return None
    except RecursionError as error:
        raise unfit(path, "nests too deeply", _HINT) from error
    samples = _samples(value)
    if samples is None:
        return None
    return [(name, list(_rows(path, name, rows))) for name, rows in samples], sha256


def _is_object(line: bytes) -> bool:
    """Whether a line is a whole JSON object that is not a mapping of conversations."""
    try:
        row = decode(line.decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and _samples(row) is None


def _samples(value: object) -> list[tuple[str, list[Any]]] | None:
    """Each conversation with its rows; None if a file is of another form."""
    match value:
        case {"qa": list()}:
            return _samples([value])
        case dict() if value and all(isinstance(rows, list) for rows in value.values()):
            return list(value.items())
        case list() if value and all(
            isinstance(sample, dict) and isinstance(sample.get("qa"), list) for sample in value
        ):
            return [
                (str(sample.get("sample_id", number)), sample["qa"])
                for number, sample in enumerate(value)
            ]
    return None


def _rows(path: Path, conversation: str, rows: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, row in enumerate(rows):
        place = f"conversation {conversation!r}, row {number}"
        if not isinstance(row, dict):
            raise unfit(path, f"{place} is not a JSON object", _HINT)
        yield place, row


def _prediction_key(path: Path, rows: Iterable[Mapping[str, Any]], given: str | None) -> str:
    """The key of the predictions to read."""
    counts = Counter(name for row in rows for name in row if name.endswith(_PREDICTION))
    if given is not None:
        for name in (given, given + _PREDICTION):
            if name in counts:
                return name
        raise _no_prediction(path, given, tuple(counts))
    if not counts:
        raise unfit(path, "has no answers: no row has a response, or a key …_prediction", _HINT)
    if len(counts) > 1:
        raise UsageError(
            f"{path} has the predictions of {len(counts)} models: {', '.join(counts)}",
            code="bad_option",
            hint=f"name one, such as --prediction {next(iter(counts))}",
        )
    return next(iter(counts))


def _no_prediction(path: Path, given: str, known: tuple[str, ...]) -> UsageError:
    has = ", ".join(known) if known else "no predictions of LoCoMo's own code"
    return UsageError(
        f"{path} has no prediction {given!r}",
        code="bad_option",
        hint=f"it has {has}",
    )


def _answers(
    path: Path, matcher: "_Matcher", conversation: str, rows: _Rows, answer_key: str
) -> Iterator[tuple[str, str, str]]:
    """Place, question id and answer of each row that has one."""
    try:
        questions = [text(row, "question") for _, row in rows]
    except (KeyError, TypeError) as error:
        raise unfit(path, f"conversation {conversation!r}: {reason_of(error)}", _HINT) from error
    categories = [CATEGORIES.get(_number(row.get("category")), "") for _, row in rows]
    names = matcher.names(conversation, questions, categories)
    for (place, row), name in zip(rows, names, strict=True):
        if answer_key not in row and answer_key != "response":
            continue  # The released code continues where it was interrupted.
        try:
            yield place, name, answer_text(row, answer_key)
        except (KeyError, TypeError) as error:
            raise unfit(path, f"{place}: {reason_of(error)}", _HINT) from error


class _Matcher:
    """Finds the questions that rows of a file are about."""

    def __init__(self, key: AnswerKey) -> None:
        self._questions: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        """Texts, categories and ids of each conversation, in their order."""
        for question in key.questions.values():
            self._questions[key.clusters[question.id]].append(
                (_folded(question.question), question.category, question.id)
            )

    def names(self, conversation: str, questions: list[str], categories: list[str]) -> list[str]:
        """The id of each question of a conversation that a file names in some way.

        Two questions of LoCoMo have the same text in different categories.
        """
        texts = [_folded(question) for question in questions]
        known = self._questions[self._conversation(conversation, set(texts))]
        ids: dict[tuple[str, str], deque[str]] = defaultdict(deque)
        for text_, category, name in known:
            ids[text_, category].append(name)
        both = {(text_, category) for text_, category, _ in known}
        unknown = {
            key: deque(name for text_, _, name in known if text_ == key) for key in set(texts)
        }
        found = []
        for number, (folded, question, category) in enumerate(
            zip(texts, questions, categories, strict=True)
        ):
            of_row = ids[folded, category] if (folded, category) in both else unknown[folded]
            found.append(
                of_row.popleft()
                if of_row
                else f"{conversation}, row {number}: {question[:_SHOWN_CHARACTERS]}"
            )
        return found

    def _conversation(self, name: str, questions: set[str]) -> str:
        """The conversation of this id, of this number in the benchmark's file, or of these texts.

        mem0 numbers conversations from 0, and others put the number behind a name.
        """

        def shared(conversation: str) -> int:
            return sum(text in questions for text, _, _ in self._questions[conversation])

        if name in self._questions:
            return name
        match = _NUMBER.fullmatch(name)
        names = list(self._questions)
        best = max(names, key=shared)
        if match and int(match[1]) < len(names):
            # In a part of the benchmark the numbers are those of other conversations.
            numbered = names[int(match[1])]
            return numbered if shared(numbered) == shared(best) else best
        return best


def _number(category: object) -> int:
    """A category's number, also as text; 0 for anything else."""
    text_ = str(category)
    return int(text_) if text_.isascii() and text_.isdecimal() else 0


def _folded(question: str) -> str:
    return " ".join(question.split()).casefold()
