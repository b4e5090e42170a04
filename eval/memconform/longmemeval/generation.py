"""Generates the keys, events or ranges of a benchmark with a language model."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from memconform.concurrency import work_through
from memconform.contract.wire import JsonValue
from memconform.datasets.benchmarks import Benchmark
from memconform.datasets.haystacks import Item
from memconform.errors import UsageError
from memconform.llm.accounting import CallTotals, dollars
from memconform.llm.chat import ChatRequest, HaltingError, LlmError
from memconform.llm.session import Model
from memconform.longmemeval.keys import EVIDENCE
from memconform.longmemeval.names import Kind
from memconform.longmemeval.prompts import (
    PROMPT_VERSION,
    expansion_request,
    parse_expansion,
    prompt_digest,
)
from memconform.longmemeval.records import ExpansionFailure, ExpansionReport


def format_options(kind: Kind, allowed: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """How a benchmark is read for a kind, as far as its format has the options.

    Facts and events are those of the user, so that only the user's turns are shown.
    """
    options = {"level": "turn" if kind.startswith("turn-") else "session"}
    if kind in ("session-userfact", "events"):
        options["session_doc"] = "user-only"
    return {name: value for name, value in options.items() if name in allowed}


@dataclass(frozen=True, slots=True)
class Call:
    """One item or question to expand."""

    name: str
    """Its key in the file."""
    request: ChatRequest


@dataclass(slots=True)
class Calls:
    """The calls of a benchmark, and how its haystacks refer to them."""

    benchmark: Benchmark
    kind: Kind
    rows: list[tuple[str, list[str]]] = field(default_factory=list)
    """The items of each haystack that was read."""
    _texts: dict[str, bytes] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Call]:
        """Read the benchmark, and yield each call once.

        Raises:
            UsageError: if the benchmark is invalid, or its questions have no dates (`bad_option`).
        """
        for haystack in self.benchmark:
            self.rows.append((haystack.id, [item.id for item in haystack.items]))
            if self.kind == "ranges":
                for query in haystack.queries:
                    if query.question_date is None:
                        raise UsageError(
                            f"{query.id} has no date, to which a time range could refer",
                            code="bad_option",
                            hint="ranges need dated questions, such as those of LongMemEval",
                        )
                    request = expansion_request(self.kind, query.question, query.question_date)
                    yield Call(query.id, request)
                continue
            for item in haystack.items:
                # No model could say anything about nothing.
                if item.text and (name := self._name(haystack.id, item)) is not None:
                    when = item.date if self.kind == "events" else None
                    yield Call(name, expansion_request(self.kind, item.text, when))

    def _name(self, haystack: str, item: Item) -> str | None:
        """The item's name in the file; None if an equal item has it already.

        LongMemEval's sessions recur in many haystacks, with other dates, under one name.
        """
        own = f"{haystack}/{item.id}"
        if self.benchmark.format.name != "longmemeval" or self.kind == "events":
            return own
        name = item.id.removeprefix(EVIDENCE)
        digest = hashlib.sha256(item.text.encode()).digest()
        known = self._texts.get(name)
        if known is None:
            self._texts[name] = digest
            return name
        return None if known == digest else own


@dataclass(slots=True)
class Expansion:
    """The values of a file, and what they took."""

    values: dict[str, JsonValue] = field(default_factory=dict)
    failures: list[ExpansionFailure] = field(default_factory=list)
    served: Counter[str] = field(default_factory=Counter)
    calls: CallTotals = field(default_factory=CallTotals)

    def report(self, calls: Calls, model: Model) -> ExpansionReport:
        benchmark = calls.benchmark
        return ExpansionReport(
            kind=calls.kind,
            path=str(benchmark.path),
            format=benchmark.format.name,
            options=dict(benchmark.options),
            sha256=benchmark.sha256,
            model=str(model.name),
            served_models=sorted(self.served),
            prompt_version=PROMPT_VERSION,
            prompt_sha256=prompt_digest(calls.kind),
            names=len(self.values),
            empty=sum(value in ([], {}) for value in self.values.values()),
            cached=self.calls.cached,
            failures=sorted(self.failures, key=lambda failure: failure.name),
            input_tokens=self.calls.input_tokens,
            output_tokens=self.calls.output_tokens,
            cost_usd=dollars(self.calls.cost),
        )


async def generate(
    calls: Calls, model: Model, workers: int, progress: Callable[[], None] = lambda: None
) -> Expansion:
    """Make all calls; one without a usable reply becomes null and is reported.

    `progress` is called after each.

    Raises:
        HaltingError: if no further call makes sense: the budget is spent, or the service is down.
            Replies so far are in the cache.
        UsageError: if the benchmark is invalid.
    """
    expansion = Expansion()

    async def one(call: Call) -> None:
        expansion.values[call.name] = await _value(call, calls.kind, model, expansion)
        progress()

    async with aclosing(work_through(iter(calls), one, workers)) as done:
        async for _ in done:
            pass
    return expansion


async def _value(call: Call, kind: Kind, model: Model, expansion: Expansion) -> JsonValue:
    try:
        reply = await model.ask(call.request, partial(parse_expansion, kind))
    except HaltingError as error:
        expansion.calls.add(error)
        raise
    except LlmError as error:
        expansion.calls.add(error)
        failure = ExpansionFailure(name=call.name, code=error.code, message=error.message)
        expansion.failures.append(failure)
        return None
    expansion.calls.add(reply)
    expansion.served[reply.served_model] += 1
    return reply.value


def file_rows(calls: Calls, values: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """The rows of LongMemEval's events, one per question, as the authors' file has them.

    The text of the sessions is omitted. Empty for other kinds and benchmarks, whose file is an
    object of the values by name.
    """
    if calls.kind != "events" or calls.benchmark.format.name != "longmemeval":
        return []
    return [
        {
            "question_id": haystack,
            "haystack_session_ids": list(items),
            "timestamped_facts": [values.get(f"{haystack}/{item}") for item in items],
        }
        for haystack, items in calls.rows
    ]
