"""Answers a question by searching: a model asks for searches until it knows, or must answer."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memconform.llm.accounting import CallTotals, Reply
from memconform.llm.chat import ChatRequest, HaltingError, LlmError
from memconform.llm.replies import InvalidReplyError
from memconform.llm.session import Model
from memconform.replay.agent_prompts import (
    MAX_TURNS,
    Dialogue,
    Tool,
    ToolCall,
    is_last,
    parse_reply,
    prompt_digest,
)
from memconform.replay.agent_results import content_words, result_text
from memconform.replay.hits import Hit
from memconform.scoring.reader.reader import ErrorFinder, count_call

SearchTool = Callable[[ToolCall], Awaitable[Sequence[Hit]]]
"""Makes one search; raises CallError or DaemonError if it fails."""

MAX_SECONDS = 90.0
"""After which no more searches are offered. A call or a search that has begun is not cut off: what
it costs would be spent, and in no account. Each has a time limit of its own."""


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """A search that was made."""

    tool: Tool
    query: str
    hits: int


@dataclass(slots=True)
class AgentAnswer:
    """A question as the agent left it, answered or not."""

    answer: str | None = None
    """None if a call failed, or none of the replies was an answer."""
    failure: LlmError | None = None
    """Why."""
    halted: bool = False
    """Whether the failure concerns all further calls."""
    served_model: str = ""
    hits: list[Hit] = field(default_factory=list)
    """All that the searches found, each once, in the order of first sight; ranks count from 1."""
    turns: int = 0
    """Calls of the model; its repair of an invalid reply counts as none."""
    searches: list[SearchRecord] = field(default_factory=list)
    reader: CallTotals = field(default_factory=CallTotals)
    reader_ms: float | None = None
    """Time spent on the calls that were made; None if all replies were cached."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A model with two search tools."""

    model: Model
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    max_turns: int = MAX_TURNS
    """Replies of the model to one question, the answer included."""
    max_seconds: float = MAX_SECONDS

    def digest(self) -> str:
        """Changes with the wording, and with the limits."""
        prompts = prompt_digest(self.max_turns)
        if self.max_seconds == MAX_SECONDS:
            return prompts
        return hashlib.sha256(f"{prompts} {self.max_seconds!r}".encode()).hexdigest()[:12]

    async def answer(
        self,
        question: str,
        date: str | None,
        search: SearchTool,
        error_in: ErrorFinder = lambda _answer: None,
        calls: CallTotals | None = None,
    ) -> AgentAnswer:
        """Answer one question.

        Args:
            question: as it is asked.
            date: the day on which it is asked; None if the benchmark has none.
            search: makes the searches; what it raises ends the question.
            error_in: names the error messages that a model sent as an answer.
            calls: what the calls are added to. Calls made before a search fails were paid for.
        """
        result = AgentAnswer(reader=CallTotals() if calls is None else calls)
        try:
            dialogue = Dialogue.begin(question, date, self.max_turns)
            await self._run(dialogue, question, search, error_in, result)
        except LlmError as error:
            result.failure, result.halted = error, isinstance(error, HaltingError)
        return result

    async def _run(
        self,
        dialogue: Dialogue,
        question: str,
        search: SearchTool,
        error_in: ErrorFinder,
        result: AgentAnswer,
    ) -> None:
        started = self.clock()
        chunks: set[tuple[str, str]] = set()
        numbers: dict[str, int] = {}
        asked: set[tuple[str, str]] = set()
        while result.answer is None:
            is_late = self.clock() - started >= self.max_seconds
            left = 0 if is_late else self.max_turns - 1 - result.turns
            call = await self._ask(self._request(dialogue, left), error_in, result)
            if isinstance(call, str):
                result.answer = call
            elif call.key in asked:
                dialogue = dialogue.repeated(call)
            else:
                hits = await search(call)
                asked.add(call.key)
                result.searches.append(SearchRecord(call.tool, call.query, len(hits)))
                for hit in hits:
                    if (hit.path, hit.text) not in chunks:
                        chunks.add((hit.path, hit.text))
                        result.hits.append(replace(hit, rank=len(result.hits) + 1))
                words = content_words(question, call.query)
                dialogue = dialogue.searched(call, result_text(hits, numbers, words))

    def _request(self, dialogue: Dialogue, left: int) -> ChatRequest:
        """The next call; the last one, if that is what an earlier, slower run came to.

        From the cache all turns before take no time: a run that ended by the clock would go on, and
        pay for calls that it did not make.
        """
        request, last = dialogue.request(left), dialogue.request(0)
        if left and not self._is_cached(request) and self._is_cached(last):
            return last
        return request

    def _is_cached(self, request: ChatRequest) -> bool:
        session = self.model.session
        if session.policy.cache == "off":
            return False
        return self.model.cache.read(self.model.key(request)) is not None

    async def _ask(
        self, request: ChatRequest, error_in: ErrorFinder, result: AgentAnswer
    ) -> ToolCall | str:
        result.turns += 1
        started = self.clock()
        parse = partial(parse_reply, request, error_in)
        try:
            reply: Reply[ToolCall | str] = await count_call(
                self.model.ask(request, parse), result.reader
            )
        except InvalidReplyError as error:
            if not is_last(request):
                raise
            undecided = LlmError(
                f"no answer after {result.turns} turns: {error.message}", code="agent_undecided"
            )
            undecided.cost, undecided.usage = error.cost, error.usage
            raise undecided from error
        if not reply.cached:
            result.reader_ms = (result.reader_ms or 0) + (self.clock() - started) * 1e3
        result.served_model = reply.served_model
        return reply.value
