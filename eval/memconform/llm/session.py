"""A call from question to checked reply: cache, budget, limit, retries, repair."""

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from memconform.llm.accounting import CallCost, Reply, estimate
from memconform.llm.budget import Ledger
from memconform.llm.budget_client import open_cache
from memconform.llm.cache import CachedReply, ReplyCache, cache_key
from memconform.llm.chat import (
    BudgetSpentError,
    ChatModel,
    ChatRequest,
    Completion,
    HaltingError,
    LlmError,
    NotCachedError,
    TransientError,
    Usage,
)
from memconform.llm.http_hooks import track_transmission
from memconform.llm.limiter import Limiter
from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits, Prices, require_priced
from memconform.llm.providers import Provider
from memconform.llm.records import ModelSettings
from memconform.llm.replies import (
    REASONING_STRIPPED,
    InvalidReplyError,
    cut_fault,
    parse_text,
    repair_request,
    usable_reply,
    without_reasoning,
)
from memconform.llm.settings import Endpoint, endpoint, service_settings
from memconform.llm.vendors import open_model
from memconform.storage.provenance import note_service

CacheUse = Literal["use", "off", "only"]
_Value = TypeVar("_Value")

_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 8.0
_CONNECTS = 4
"""Refused connections to a service that never answered: a wrong address stays wrong."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """How calls are made; of all roles alike."""

    concurrency: int = 16
    """Calls in flight to one provider."""
    deadline_s: float = 120.0
    """For a call with its retries; neither waiting for a slot nor opening the client counts."""
    cache: CacheUse = "use"
    allow_unpriced: bool = False


@dataclass(slots=True)
class LlmSession:
    """Opens all models, which share budget, cache and each provider's limit.

    Close it, or use `contextlib.aclosing`.
    """

    ledger: Ledger
    policy: CallPolicy = field(default_factory=CallPolicy)
    prices: Prices = field(default_factory=Prices.load)
    cache: ReplyCache = field(default_factory=open_cache)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    fake: Endpoint | None = None
    """Where the scripted upstream listens, if one was started."""
    reserved: int = 0
    """Attempts in flight."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when one of them ends; replaced then."""
    pending: dict[str, "asyncio.Future[Any]"] = field(default_factory=dict)
    """Calls that are made now, by their key in the cache."""
    _providers: dict[str, Provider] = field(default_factory=dict)
    _models: list["Model"] = field(default_factory=list)

    def model(
        self,
        name: ModelName,
        *,
        cache: ReplyCache | None = None,
        deadline_s: float | None = None,
    ) -> "Model":
        """A model, ready to be called.

        Args:
            name: of the model.
            cache: of its replies, in place of the session's.
            deadline_s: of its calls, in place of the policy's.

        Raises:
            UsageError: without a key, a usable address, or a price.
        """
        traits = self.prices.traits(name)
        require_priced(name, traits, allowed=self.policy.allow_unpriced)
        if name.provider == "fake":
            if self.fake is None:
                raise ValueError("no scripted upstream was started")
            where = self.fake
        else:
            where = endpoint(name, self.env)
            note_service(service_settings(name.provider, where))
        shared = self._providers.setdefault(
            name.provider, Provider(Limiter(self.policy.concurrency))
        )
        opened = Model(
            session=self,
            name=name,
            traits=traits,
            endpoint=where,
            provider=shared,
            chat=open_model(name, where, traits, shared.accepted),
            cache=cache or self.cache,
            deadline_s=deadline_s or self.policy.deadline_s,
        )
        self._models.append(opened)
        return opened

    def end_attempt(self) -> None:
        """Let calls that wait for a reservation look again."""
        self.reserved -= 1
        self.settled.set()
        self.settled = asyncio.Event()

    async def aclose(self) -> None:
        """Close all clients, and the ledger."""
        for model in self._models:
            await model.chat.close()
        for provider in self._providers.values():
            provider.summarize()
        self.ledger.close()


@dataclass(frozen=True, slots=True)
class Model:
    """One model of a session."""

    session: LlmSession
    name: ModelName
    traits: ModelTraits
    endpoint: Endpoint
    provider: Provider
    chat: ChatModel
    cache: ReplyCache
    deadline_s: float
    """For a call with its retries."""

    @property
    def settings(self) -> ModelSettings:
        """What a result says of it."""
        return ModelSettings.of(self.name, self.traits, self.endpoint.stable_address)

    def key(self, request: ChatRequest, repetition: int = 0) -> str:
        """Where the cache keeps the reply to `request`."""
        where = self.endpoint.stable_address
        return cache_key(self.name, where, self.traits, request, repetition)

    async def ask(
        self, request: ChatRequest, parse: Callable[[str], _Value], *, repetition: int = 0
    ) -> Reply[_Value]:
        """Make a call, and have its reply checked.

        An invalid reply is sent back once for repair; one that was refused, cut or empty is asked
        for once more. Only replies that `parse` accepts are cached. Equal calls at the same time
        are made once.

        Args:
            request: what is asked.
            parse: makes a value of the reply; raises ValueError for what it does not accept.
            repetition: the number of the sample; another number is another call.

        Raises:
            InvalidReplyError: `llm_invalid_reply`.
            LlmError: whatever else the call ends in; a HaltingError concerns all calls.
        """
        use = self.session.policy.cache
        if use == "off":
            return await self._ask(request, parse, None)
        key = self.key(request, repetition)
        while True:
            entry = await self.cache.look_up(key, claims=use != "only")
            if entry is not None and (reply := usable_reply(entry, parse)) is not None:
                return reply
            if use == "only":
                raise NotCachedError(
                    f"a reply of {self.name} is not in the cache",
                    code="not_cached",
                    hint="run once without --cache-only, with the same dataset, answers and judge",
                )
            pending = self.session.pending.get(key)
            if pending is None or pending.done():
                break
            # Whatever it comes to, the next look into the cache, or the next call, tells.
            await asyncio.wait({pending})
        call = asyncio.ensure_future(self._ask(request, parse, key))
        self.session.pending[key] = call
        try:
            return await call
        except BaseException:
            self.cache.release(key)
            raise
        finally:
            call.cancel()
            if self.session.pending.get(key) is call:
                del self.session.pending[key]

    async def _ask(
        self, request: ChatRequest, parse: Callable[[str], _Value], key: str | None
    ) -> Reply[_Value]:
        """Call, and call again for an unusable reply; one that is used is cached under `key`."""
        cost = CallCost()
        try:
            return await self._ask_twice(request, parse, key, cost)
        except LlmError as error:
            error.cost, error.usage = cost.amount, cost.usage
            raise

    async def _ask_twice(
        self,
        request: ChatRequest,
        parse: Callable[[str], _Value],
        key: str | None,
        cost: CallCost,
    ) -> Reply[_Value]:
        next_request, fault = request, ""
        first: str | None = None
        for attempt in range(2):
            completion = await self._complete(next_request, cost)
            first = completion.text if first is None else first
            text = without_reasoning(completion.text)
            if text != completion.text:
                self.provider.notice(self.name, REASONING_STRIPPED)
            if completion.rejection:
                fault = completion.rejection
                continue
            try:
                value = parse_text(text, parse)
            except ValueError as error:
                fault = str(error)
                next_request = repair_request(request, text, fault)
                continue
            if attempt:
                self.provider.notice_repair(self.name, fault)
            self.provider.accept(self.name, request)
            if key is not None:
                self.cache.write(key, CachedReply(completion.text, completion.served_model))
            return Reply(
                value=value,
                served_model=completion.served_model,
                cached=False,
                usage=cost.usage,
                cost=cost.amount,
            )
        invalid = InvalidReplyError(
            f"{self.name} gave no usable reply, twice: {fault}", code="llm_invalid_reply"
        )
        invalid.reply = first or ""
        raise self.provider.reject(self.name, request, invalid, fault)

    async def _complete(self, request: ChatRequest, cost: CallCost) -> Completion:
        """One reply, with retries until the deadline; whatever is charged goes to `cost`."""
        await self.chat.ready()
        loop = asyncio.get_running_loop()
        left = self.deadline_s
        backoff = _FIRST_BACKOFF_S
        attempts = 0
        while True:
            async with self.provider.limiter.slot():
                self.provider.require_usable(self.name, request)
                begun = loop.time()
                try:
                    completion = await self._attempt(request, left, cost)
                except TransientError as error:
                    wait = backoff * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
                    if error.retry_after_s is not None:
                        # A little more than asked for, so that waiting calls do not return as one.
                        wait = error.retry_after_s + random.uniform(0, _FIRST_BACKOFF_S)  # noqa: S311
                    left -= loop.time() - begun + wait
                    failure = error
                    if error.throttled:
                        self.provider.limiter.throttled(min(wait, max(left, 0.0)))
                else:
                    self.provider.succeeded()
                    return completion
            attempts += 1
            if (
                failure.code == "llm_connection"
                and attempts == _CONNECTS
                and not (self.provider.reached or failure.billable)
            ):
                raise self.provider.unreachable(self.name, failure)
            if left <= 0:
                raise self.provider.give_up(self.name, failure, self.deadline_s)
            backoff = min(2 * backoff, _LONGEST_BACKOFF_S)
            await asyncio.sleep(wait)

    async def _attempt(self, request: ChatRequest, left: float, cost: CallCost) -> Completion:
        """One attempt: its price is reserved before, and settled by what the service reports."""
        price = self.traits.price
        reserved = price.cost(estimate(request, self.traits)) if price is not None else 0
        await self._reserve(reserved)
        try:
            return await self._call(request, left, reserved, cost)
        finally:
            self.session.end_attempt()

    async def _call(
        self, request: ChatRequest, left: float, reserved: int, cost: CallCost
    ) -> Completion:
        # Silence must leave time for another attempt.
        allowed = min(left, self.deadline_s / 2)
        with track_transmission() as transmission:
            try:
                async with asyncio.timeout(allowed):
                    completion = await self.chat.complete(request, allowed)
            except BaseException as error:
                # Nobody says whether a lost reply is charged: its reservation stays.
                if transmission.may_cost and _is_billable(error):
                    self._settle(reserved, getattr(error, "reported", None), cost)
                else:
                    self.session.ledger.settle(reserved, 0)
                if isinstance(error, HaltingError):
                    self.provider.halt(self.name, error)
                if not isinstance(error, TimeoutError):
                    raise
                message = transmission.timeout_message(self.name)
                raise TransientError(message, code="llm_timeout") from error
        self._settle(reserved, completion.usage, cost)
        if not completion.rejection and (cut := cut_fault(request, completion.usage)):
            return replace(completion, rejection=cut)
        return completion

    def _settle(self, reserved: int, usage: Usage | None, cost: CallCost) -> None:
        """Charge an attempt: what its tokens cost, or else all that was reserved."""
        price, spent = self.traits.price, reserved
        if usage is not None and price is not None:
            spent = price.cost(usage)
        self.session.ledger.settle(reserved, spent)
        cost.add(usage, spent)

    async def _reserve(self, amount: int) -> None:
        """Reserve, once calls in flight have given back what they do not take.

        Raises:
            BudgetSpentError: where none is in flight any more, and it is too little still.
        """
        session = self.session
        while True:
            try:
                await session.ledger.acquire(amount)
            except BudgetSpentError:
                if not session.reserved:
                    raise
                await session.settled.wait()
            else:
                session.reserved += 1
                return


def _is_billable(error: BaseException) -> bool:
    """Whether a service may charge for an attempt that was sent and ended in this error."""
    if not isinstance(error, LlmError):
        return True
    return error.reported is not None or (isinstance(error, TransientError) and error.billable)
