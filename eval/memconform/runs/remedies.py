"""What a manifest could say so that `doctor` gets past a failed step."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.client.recorder import Exchange
from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import merged_tables
from memconform.contract.missing_keys import gaps
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import Mode, RankBy
from memconform.daemons.sdk_runner import SdkRunner
from memconform.ingest.provable_modes import TURNS_HINT


@dataclass(frozen=True, slots=True)
class Remedy:
    """A line for the sdk.toml, and the change that it makes; or a flag to measure with."""

    line: str
    dialect: Mapping[str, Any] | None = None
    """Merged into the dialect; None if the line does not change it."""
    seed: Mapping[str, Any] | None = None
    """Merged into `[seed]`."""

    @property
    def label(self) -> str:
        """What to do with the line."""
        return "add to sdk.toml" if self.line.startswith("[") else "or"

    @property
    def is_certain(self) -> bool:
        """Whether the line can be tried as it is, without anything that only the user knows."""
        return self.dialect is not None or self.seed is not None


def remedies(
    step: str, error: BaseException, exchanges: Sequence[Exchange], runner: SdkRunner
) -> list[Remedy]:
    """Return the lines that may help with a failed step; none for a defect of the daemon."""
    call = next((e for e in _causes(error) if isinstance(e, CallError)), None)
    if call is not None and call.model is not None:
        return _shape_remedies(call.model, exchanges, runner.dialect)
    code = call.code if call is not None else getattr(error, "code", "")
    if step == "version":
        absent = Remedy("[dialect.routes] version = false", {"routes": {"version": False}})
        return [absent] if code in ("http_404", "http_405", "http_501") else []
    message = call.message if call is not None else str(error)
    if code == "daemon_not_ready" and _NOT_FOUND.search(message):
        return [Remedy('[ready] path = "/PATH"   # a path that answers 200 once it is ready')]
    if code == "bad_ranking" and "score rises" in message:
        return _ORDER_REMEDIES
    routes = _route_remedies(message, runner.dialect) if code in _LACKS_ROUTE else []
    if step == "ingest":
        return [*_ingest_remedies(code, message, runner), *routes]
    flag = flag_remedy(code, message, runner)
    flags = [Remedy(flag)] if flag else []
    return [*_answer_remedies(step, code, message, runner), *flags, *routes]


_ORDER_REMEDIES = [
    Remedy("measure with run, bench or lme --rank-by position"),
    Remedy('[dialect] rank_by = "position"   # if it reorders rankings without rescoring them'),
]
_LACKS_ROUTE = ("http_404", "http_405")
_NOT_FOUND = re.compile(r"last answer of \S+: 404\b")
_REQUEST = re.compile(r"(?P<method>[A-Z]+) (?P<path>/[^\s?]*)\S*: 40[45]\b")


def _route_remedies(message: str, dialect: Dialect | None) -> list[Remedy]:
    """What helps with a 404 or 405 of a path of the contract: the daemon's own route."""
    request = _REQUEST.search(message)
    if request is None:
        return []
    for route in ROUTES:
        path = route.path.replace("{brainId}", "[^/]+")
        name = to_snake(route.name)
        is_named = dialect is not None and name in dialect.routes
        if (
            route.method.upper() == request["method"]
            and re.fullmatch(path, request["path"])
            and not is_named
        ):
            brain = "{brain}/" if "{brainId}" in route.path else ""
            own = f"{request['method']} /{brain}PATH"
            return [Remedy(f'[dialect.routes] {name} = "{own}"   # if its path is another')]
    return []


def _shape_remedies(
    model: type[BaseModel], exchanges: Sequence[Exchange], dialect: Dialect | None
) -> list[Remedy]:
    """What helps with the keys that the last message lacks."""
    if not exchanges:
        return []
    last = exchanges[-1]
    text = last.events[-1][1] if last.events else bytes(last.body)
    return [Remedy(gap.line(), gap.table()) for gap in gaps(text, model, dialect)]


def _answer_remedies(step: str, code: str, message: str, runner: SdkRunner) -> list[Remedy]:
    """What helps with a search or an ask."""
    if step.startswith("search") and code in ("mode_not_served", "bad_trace"):
        return [Remedy(_RESTART.line)] if _may_need_restart(runner) else []
    if code == "unknown_event":
        name = message.partition("'")[2].partition("'")[0]
        return [Remedy(f'[dialect.events] answer_delta = "{name}"   # or another event')]
    if code == "no_answer" and "unknown events: " in message:
        unknown = message.partition("unknown events: ")[2]
        return [Remedy(f'[dialect.events] answer_delta = "EVENT"   # one of: {unknown}')]
    return []


_SERVED = re.compile(r"but the daemon served (?P<mode>[a-z0-9-]+)$")


def flag_remedy(
    error_code: str, message: str, runner: SdkRunner, *, rank_by: RankBy = "score"
) -> str:
    """What to type so that a question is measured; empty if no flag helps that is not in use."""
    scripted = runner.upstream == "own" and runner.can_be_scripted
    if error_code == "bad_ranking" and "score rises" in message and rank_by == "score":
        return "measure with --rank-by position"
    if (served := _SERVED.search(message)) is not None and error_code == "mode_not_served":
        remedy = f"measure with --mode {served['mode']}, as which it is served"
        return f"{TURNS_HINT}; or {remedy}" if "mode conversation," in message else remedy
    if error_code == "reader_failed" and scripted:
        return "measure with --upstream scripted, whose reader answers without a model"
    if error_code == "bad_trace":
        for fault, mode, service in _LACKING:
            if fault in message:
                offers = scripted and mode in runner.scripted_modes
                upstream = f"measure with --upstream scripted, which has {service}"
                less = Mode.HYBRID if mode is Mode.HYBRID_RERANK else Mode.BM25
                other = f"measure with --mode {less.value}, or configure {service}"
                if mode is Mode.HYBRID and not runner.seed.restart:
                    other += _EMBEDS_AT_START if runner.managed else _RESTART_YOURSELF
                return upstream if offers else other
    return ""


_EMBEDS_AT_START = "; if it embeds only when it starts, set [seed] restart = true"
_RESTART_YOURSELF = (
    "; if it embeds only when it starts, restart it and measure what it has by --brain NAME"
)
_LACKING = (
    ("without reranking", Mode.HYBRID_RERANK, "a reranker"),
    ("without an embedder", Mode.HYBRID, "an embedder"),
)
"""Contradictions of traces, with a mode that needs what the daemon lacks."""


def mode_remedy(error: CallError, mode: Mode, needed: Mode, runner: SdkRunner) -> str:
    """What to type, or to change, where a claimed or needed mode is not served."""
    flag = flag_remedy(error.code, error.message, runner) if mode is needed else ""
    claims = f"take {mode.value} out of [capabilities] modes"
    if mode is Mode.AUTO and Mode.HYBRID in (runner.modes or ()):
        claims = "take hybrid out of [capabilities] modes: it says that auto is hybrid or bm25"
    remedies = [flag, claims] if mode in (runner.modes or ()) else [flag]
    if mode is Mode.CONVERSATION:
        # Without a turn in the brain, the contract has it served as auto.
        return "; or ".join(filter(None, [flag, _NO_TURNS]))
    remedies += ["fix the daemon's settings", "use --allow-fallback"]
    return "; or ".join(filter(None, remedies))


_NO_TURNS = (
    "use another --mode: conversation ranks turns, documents with session_id and index in their"
    " metadata, and this data may have none; memconform bench has benchmarks of conversations"
)

_RESTART = Remedy(
    "[seed] restart = true   # if it indexes or embeds only at its start", seed={"restart": True}
)


def _may_need_restart(runner: SdkRunner) -> bool:
    """Whether a restart may help that is not asked for; memconform restarts what it has started."""
    return runner.managed and not runner.seed.restart


def _ingest_remedies(code: str, message: str, runner: SdkRunner) -> list[Remedy]:
    """What helps with the seeding of a brain."""
    seed = runner.seed
    lacks_route = code in ("http_404", "http_405") and "/ingest/" in message
    if lacks_route and seed.via == "batch":
        return [Remedy('[seed] via = "http"', seed={"via": "http"})]
    is_changed = code == "index_incomplete" and "was acknowledged as" in message
    if seed.via in ("http", "batch") and (is_changed or lacks_route):
        via = Remedy('[seed] via = "documents"', seed={"via": "documents"})
        return [via, Remedy('[dialect.paths] prefix = "…"   # if only some folders are indexed')]
    if code in ("not_searchable", "bad_trace") and _may_need_restart(runner):
        # A daemon of the contract indexes at once; of another one nobody knows.
        return [_RESTART if runner.dialect is not None else Remedy(_RESTART.line)]
    return []


def apply(remedy: Remedy, runner: SdkRunner, client: ContractClient) -> None:
    """Let a runner and its client go on as if the sdk.toml had the line of a remedy."""
    if remedy.seed is not None:
        runner.seed = runner.seed.model_copy(update=dict(remedy.seed))
    if remedy.dialect is not None:
        table = {} if runner.dialect is None else runner.dialect.model_dump(exclude_unset=True)
        kind = Dialect if runner.dialect is None else type(runner.dialect)
        runner.dialect = client.dialect = kind.model_validate(merged_tables(table, remedy.dialect))


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def toml(found: Iterable[Remedy]) -> str:
    """The lines of several remedies, each once, below the headings of their tables."""
    tables: dict[str, dict[str, None]] = {}
    for remedy in found:
        heading, bracket, line = remedy.line.partition("] ")
        if bracket:
            tables.setdefault(f"{heading}]", {})[line] = None
    return "\n\n".join("\n".join([heading, *lines]) for heading, lines in tables.items())
