"""What is scored: the questions of WMB-100K, stored answers, and who judges them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.bench.wmb.records import WmbSettings
from memconform.bench.wmb.stored_answers import StoredAnswers, memories_digest
from memconform.datasets.errata import Errata
from memconform.datasets.files import PieceReader
from memconform.datasets.question import Question
from memconform.datasets.wmb import WmbKey
from memconform.datasets.wmb_answers import read_answer_rows
from memconform.datasets.wmb_names import FALSE_MEMORY
from memconform.errors import UsageError
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.wmb import SCRIPT_CHARACTERS, Profile
from memconform.scoring.wmb_rows import ScoredAnswers


@dataclass(frozen=True, slots=True, kw_only=True)
class WmbPlan:
    """Everything that a scoring needs."""

    key: WmbKey
    answers: StoredAnswers
    scorer: JudgeScorer
    prompts: Literal["own", "official"]
    label: str
    profiles: tuple[Profile, ...]
    errata: Errata | None = None
    """Those of the questions that the second view omits; None without such a view."""
    command: tuple[str, ...] = ()
    resumed: Path | None = None
    """The journal that is continued."""

    @property
    def settings(self) -> WmbSettings:
        return WmbSettings(
            questions_sha256=self.key.sha256,
            answers_sha256=self.answers.sha256,
            prompts=self.prompts,
            judge=self.scorer.settings,
        )

    def scored(self, verdicts: dict[tuple[str, str], bool]) -> ScoredAnswers:
        """The answers with what is known of them."""
        return ScoredAnswers(
            questions=self.key.questions,
            rows=self.answers.rows,
            verdicts=verdicts,
            lost=frozenset(each.question for each in self.answers.lost),
            not_asked=frozenset(self.answers.not_asked),
        )

    def shown_digests(self) -> set[tuple[str, str]]:
        """What the profiles need verdicts on: questions, and digests of memories."""
        return {pair for row in self._judged_rows() for pair in row}

    def _judged_rows(self) -> Iterator[list[tuple[str, str]]]:
        """For each row of the file, what is judged of it."""
        counted = {id(row) for row in self.scored({}).counted.values()}
        for row in self.answers.rows:
            question = self.key.questions.get(row.question)
            if question is None or question.category == FALSE_MEMORY or row.returned_nothing:
                yield []
                continue
            digests = []
            if "readme" in self.profiles and id(row) in counted and row.error is None:
                digests.append(row.whole)
            if "script" in self.profiles:
                digests.append(row.cut)
            yield [(row.question, digest) for digest in dict.fromkeys(digests)]

    def texts(self, judged: set[tuple[str, str]]) -> Iterator[tuple[Question, str]]:
        """The memories to judge, each once, with their questions; the file is read again.

        Args:
            judged: what has a verdict already.

        Raises:
            UsageError: if the file has changed (`dataset_changed`).
        """
        wanted = iter(self._judged_rows())
        seen = set(judged)
        with PieceReader(self.answers.path) as source:
            for row in read_answer_rows(source):
                text = row.text
                for pair in next(wanted, []):
                    if pair in seen:
                        continue
                    seen.add(pair)
                    shown = [text, text[:SCRIPT_CHARACTERS]]
                    matching = [each for each in shown if memories_digest(each) == pair[1]]
                    if pair[0] != row.question or not matching:
                        raise self._changed()
                    yield self.key.questions[row.question], matching[0]
            if source.sha256 != self.answers.sha256:
                raise self._changed()

    def _changed(self) -> UsageError:
        return UsageError(
            f"{self.answers.path} changed while it was being used",
            code="dataset_changed",
            hint="run again with --resume; the verdicts are in the journal of the run's folder",
        )
