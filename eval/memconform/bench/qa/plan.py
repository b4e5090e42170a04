"""What is scored: the stored answers of a benchmark, and by which rubrics."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from memconform.bench.digests import digest_of_names
from memconform.bench.qa.records import AnswerFile, KeyFile, QaSettings, RepeatedText
from memconform.datasets.answer_keys import AnswerKey
from memconform.datasets.error_text import error_message, resembles_error
from memconform.datasets.hypotheses import Hypotheses
from memconform.datasets.question import Question
from memconform.datasets.reasoning_blocks import ONLY_REASONING
from memconform.datasets.sources import pinned_as
from memconform.errors import NothingSelectedError
from memconform.scoring.judge.calibration import Calibration
from memconform.scoring.judge.records import JudgeSettings
from memconform.scoring.judge.rubric import settled_if_blank
from memconform.scoring.judge.scorer import JudgeScorer

Prompts = Literal["own", "official"]

_FEWEST_ANSWERS = 3
"""Answers of which equal texts are reported: two may well be the same."""
_SHOWN_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class RubricRun:
    """A rubric with the judges that apply it."""

    scorer: JudgeScorer
    prompts: Prompts
    calibrations: Mapping[str, Calibration | None] | None
    """What is known of the judges; None if they cannot be calibrated with this rubric."""

    @property
    def settings(self) -> JudgeSettings:
        return self.scorer.settings


@dataclass(frozen=True)
class AnswerSelection:
    """The stored answers beside the questions that they belong to."""

    key: AnswerKey
    hypotheses: Hypotheses
    partial: bool
    """Whether only questions that have an answer are expected."""
    disputed: frozenset[str] | None
    """Questions whose reference answer is disputed; None without an errata file."""

    @cached_property
    def errors(self) -> dict[str, str]:
        """Error messages instead of an answer, by the id of their question."""
        answers = self.hypotheses.answers
        unanswered = self._without_answer
        messages = (
            (q.id, unanswered.get(q.id) or error_message(q, answers[q.id])) for q in self._known
        )
        return {name: message for name, message in messages if message is not None}

    @cached_property
    def answered(self) -> list[Question]:
        """The questions that have an answer, in the order of the answers."""
        return [question for question in self._known if question.id not in self.errors]

    @property
    def expected(self) -> list[Question]:
        """The questions that count: all, or those that the file names, be it with an error."""
        if self.partial:
            return self._known
        return list(self.key.questions.values())

    @property
    def _without_answer(self) -> dict[str, str]:
        """Answers of which nothing was left without their reasoning."""
        stored = self.hypotheses
        names = stored.reasoning if stored.is_stripped else ()
        return {name: ONLY_REASONING for name in names if not stored.answers[name].strip()}

    @property
    def _known(self) -> list[Question]:
        questions = self.key.questions
        return [questions[name] for name in self.hypotheses.answers if name in questions]

    def require_answers(self) -> None:
        """Raise NothingSelectedError if no answer belongs to a question."""
        if not self._known:
            raise NothingSelectedError(
                f"no answer of {self.hypotheses.path} belongs to a question of {self.key.path}",
                code="nothing_selected",
                hint=f"its first id is {next(iter(self.hypotheses.answers))!r}, the first question"
                f" {next(iter(self.key.questions), '')!r}",
            )

    def settings(self, rubrics: Mapping[str, JudgeSettings]) -> QaSettings:
        """What decides the scores, given the judges of each rubric."""
        return QaSettings(
            suite=self.key.suite,
            data_sha256=self.key.sha256,
            hypotheses_sha256=self.hypotheses.sha256,
            disputed_sha256=None if self.disputed is None else digest_of_names(self.disputed),
            partial=self.partial,
            rubrics=dict(rubrics),
            prediction=self.hypotheses.prediction,
            strip_reasoning=self.hypotheses.is_stripped,
        )

    def answer_file(self) -> AnswerFile:
        """What a report says of the answers."""
        answers, questions = self.hypotheses.answers, self.key.questions
        unanswered = self._without_answer
        return AnswerFile(
            path=str(self.hypotheses.path.resolve()),
            sha256=self.hypotheses.sha256,
            answers=len(answers),
            missing=[name for name in questions if name not in answers],
            unknown=[name for name in answers if name not in questions],
            repeated=self.hypotheses.repeated,
            errors=self.errors,
            resembling_errors=[
                name
                for name, text in answers.items()
                if name not in self.errors and resembles_error(text)
            ],
            empty=sum(
                settled_if_blank(questions[name], text) is not None
                for name, text in answers.items()
                if name in questions and name not in self.errors
            ),
            reasoning=len(self.hypotheses.reasoning),
            same_text=_same_text(
                [text for name, text in answers.items() if name not in unanswered]
            ),
        )


def key_file(key: AnswerKey, disputed: frozenset[str] | None) -> KeyFile:
    """What a report says of the benchmark."""
    return KeyFile(
        path=str(key.path.resolve()),
        sha256=key.sha256,
        pinned=pinned_as(key.sha256),
        questions=len(key.questions),
        abstention=sum(question.abstain for question in key.questions.values()),
        disputed=len(disputed or ()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QaPlan:
    """Everything that a scoring needs."""

    selection: AnswerSelection
    rubrics: Mapping[str, RubricRun] = field(default_factory=dict)
    """By name, in the order in which they are applied; empty if no judge is asked."""
    command: tuple[str, ...] = ()
    resumed: Path | None = None
    """The journal that is continued."""

    @property
    def settings(self) -> QaSettings:
        return self.selection.settings({name: run.settings for name, run in self.rubrics.items()})


def _same_text(answers: Collection[str]) -> RepeatedText | None:
    """The text of more than half of the answers, of which there are at least three."""
    texts = Counter(" ".join(text.split()) for text in answers)
    if len(answers) < _FEWEST_ANSWERS:
        return None
    [(text, count)] = texts.most_common(1)
    if 2 * count <= len(answers):
        return None
    return RepeatedText(text=text[:_SHOWN_CHARACTERS], answers=count)
