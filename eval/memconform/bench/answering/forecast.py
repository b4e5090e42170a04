"""What reading would take: calls, tokens and dollars, before anything is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from memconform.bench.answering.plan import AnswerTask, Arm, shown_passages, unanswerable
from memconform.bench.answering.records import ReaderSettings
from memconform.datasets.conversation_store import ConversationStore
from memconform.datasets.error_text import error_message
from memconform.datasets.question import Question
from memconform.llm.cache import ReplyCache, cache_key
from memconform.llm.chat import ChatRequest
from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits
from memconform.llm.replies import cached_reply
from memconform.scoring.judge.forecast import Forecast
from memconform.scoring.reader.passages import Passage
from memconform.scoring.reader.prompts import DECLINES, Wording
from memconform.scoring.reader.reader import parse_answer, parse_note


@dataclass(frozen=True, slots=True)
class ReadingForecast:
    """The calls of the reader, and the answers that judges are asked about."""

    arms: list[Forecast]
    """A row for each arm in which the reader is asked."""
    answers: list[tuple[Question, str | None]]
    """Each with its question, of all arms; None if it is not known before the reader is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingForecaster:
    """Forecasts what a reader takes beyond the replies that are cached.

    A cached reply that the reader would reject counts as missing. A call that an earlier one makes
    counts as cached.
    """

    name: ModelName
    traits: ModelTraits
    address: str | None
    """Address of the service; None is the vendor's own."""
    wording: Wording
    settings: ReaderSettings
    level: str
    """Whether sessions or turns were retrieved."""
    cache: ReplyCache
    _counted: set[str] = field(default_factory=set)
    """The keys of all calls so far."""

    def forecast(
        self,
        arms: Sequence[Arm],
        tasks: Sequence[AnswerTask],
        conversations: ConversationStore,
    ) -> ReadingForecast:
        """What reading takes, a row an arm.

        Notes that are not taken yet are unknown: the answer by `con-separate` is then estimated as
        read from whole passages.

        Raises:
            UsageError: for a retrieved item that the conversation does not have (`unknown_item`).
        """
        rows: list[Forecast] = []
        answers: list[tuple[Question, str | None]] = []
        for arm in arms:
            row = Forecast(arm.name, str(self.name))
            answers.extend(
                (task.question, self._answer(row, arm, task, conversations))
                for task in tasks
                if unanswerable(arm, task) is None
            )
            if arm.control != "always-abstain" and not arm.is_daemons_own:
                rows.append(row)
        return ReadingForecast(rows, answers)

    def _answer(
        self, row: Forecast, arm: Arm, task: AnswerTask, conversations: ConversationStore
    ) -> str | None:
        """Count the calls of a question; its answer, if no call is needed for it."""
        if arm.control == "always-abstain":
            return DECLINES
        if arm.is_daemons_own:
            return arm.own_answer(task.question.id)
        conversation = conversations[task.haystack]
        shown = shown_passages(arm, task, conversation, self.level, self.settings)
        return self._read(row, task.question, None if shown is None else shown.passages)

    def _read(
        self, row: Forecast, question: Question, passages: Sequence[Passage] | None
    ) -> str | None:
        asked = (question.question, question.question_date)
        error_in = partial(error_message, question)
        evidence = passages
        if passages is not None and self.settings.method == "con-separate":
            evidence = self._notes(row, question, passages)
        if evidence is None and passages is not None:
            self._count(row, self.wording.answer_request(*asked, passages), None)
            return None
        request = self.wording.answer_request(*asked, evidence)
        return self._count(row, request, partial(parse_answer, self.wording, request, error_in))

    def _notes(
        self, row: Forecast, question: Question, passages: Sequence[Passage]
    ) -> list[Passage] | None:
        """Count the calls that take notes; what the answer is read from, if all are cached."""
        evidence: list[Passage] = []
        are_known = True
        for passage in passages:
            request = self.wording.note_request(question.question, question.question_date, passage)
            parse = partial(parse_note, request, partial(error_message, question))
            note = self._count(row, request, parse)
            if note is None:
                are_known = False
            elif (replaced := self.wording.apply_note(passage, note)) is not None:
                evidence.append(replaced)
        return evidence if are_known else None

    def _count(
        self, row: Forecast, request: ChatRequest, parse: Callable[[str], str] | None
    ) -> str | None:
        """Count a call, and return what is read from its cached reply.

        Args:
            row: what it is added to.
            request: what is asked.
            parse: reads the reply; None for an estimated request, which no cached reply answers.
        """
        key = cache_key(self.name, self.address, self.traits, request)
        reply = None if parse is None else cached_reply(self.cache, key, parse)
        row.add(request, self.traits, cached=reply is not None or key in self._counted)
        self._counted.add(key)
        return None if reply is None else reply.value
