"""From the questions of one part to its result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from memconform.client.timings import is_short
from memconform.contract.skipped_stages import count_skips
from memconform.datasets.question import Question
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.llm.accounting import CallTotals
from memconform.records import Incident
from memconform.replay.plan import Part, ReplayPlan
from memconform.replay.records import (
    CategoryScore,
    CostAccounting,
    Latencies,
    LmeQuestion,
    LmeResult,
    ReplaySettings,
)
from memconform.replay.stored_results import lme_scores, scored_question
from memconform.scoring.accuracy import Accuracy, Estimate, accuracy, estimate
from memconform.scoring.costs import RoleCost
from memconform.scoring.retrieval import metrics
from memconform.scoring.statuses import failure_lines
from memconform.stats.clusters import mean_interval
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.provenance import PartOrigin, Start

_KS = (1, 5, 10, 20, 50)
_METRICS = ("recall_any", "recall_all", "ndcg")


def cost_accounting(by_role: Mapping[str, RoleCost]) -> CostAccounting:
    """The costs of roles that made calls, and their sum."""
    made = {name: cost for name, cost in by_role.items() if cost.calls}
    return CostAccounting(total_usd=sum(c.cost_usd for c in made.values()), by_role=made)


@dataclass(frozen=True, slots=True)
class PartOutline:
    """What one SDK's part of a replay is, without what came of it."""

    name: str
    is_control: bool
    settings: ReplaySettings
    build_hash: str | None
    mode_rule: str | None
    command: Sequence[str]
    merged: tuple[PartOrigin, ...] = ()
    """What a merged result was made of."""


def replay_result(
    outline: PartOutline,
    rows: Sequence[LmeQuestion],
    incidents: Sequence[Incident],
    *,
    start: Start,
    version: str | None,
    reader: RoleCost,
) -> LmeResult:
    """The result of a part.

    Args:
        outline: what the part is.
        rows: its questions, in their order.
        incidents: what ended it early.
        start: when it began.
        version: that the daemon reported.
        reader: what the calls of the reader took.
    """
    passed = {row.id: row.correct for row in rows if row.measured}
    scores = lme_scores(rows)
    gold = [scored_question(row) for row in rows if row.gold_retrieved]
    retrieval_ms = QuantileSummary.of(_values(row.retrieval_ms for row in rows))
    settings = outline.settings
    return LmeResult(
        exit_code=int(_exit_code(rows, incidents)),
        **start.header(outline.command),
        sdk=outline.name,
        version=version,
        build_hash=outline.build_hash,
        dataset_sha=settings.dataset_sha256,
        settings=settings,
        questions_run=len(rows),
        measured=len(passed),
        overall_score=_score(scores.overall),
        overall_interval=_interval(scores.overall.rate),
        task_avg_score=_fraction(scores.task_averaged.rate),
        abstention_score=_score(scores.abstention),
        by_category={name: _category(each) for name, each in scores.by_category.items()},
        exact_match=_mean(
            [row.exact_match for row in rows if row.measured and row.exact_match is not None]
        ),
        scores=scores,
        retrieval={} if outline.is_control else _retrieval(settings.retrieval.top_k, rows),
        skipped_stages=count_skips(row.skipped_stage for row in rows),
        rising_scores=sum(row.rises for row in rows),
        short_rankings=sum(row.is_short for row in rows),
        null_lists=sum(row.null_chunks for row in rows),
        empty_rankings=0
        if outline.is_control
        else sum(row.measured and not row.hits for row in rows),
        correct_given_gold=accuracy(gold, passed) if gold else None,
        cost_accounting=cost_accounting(
            {
                "reader": reader,
                "judge": RoleCost.of_votes(vote for row in rows for vote in row.votes),
            }
        ),
        latency_p50_ms=retrieval_ms.p50 if retrieval_ms and not settings.agentic else None,
        latency=Latencies(
            retrieval=retrieval_ms,
            reader=QuantileSummary.of(_values(row.reader_ms for row in rows)),
            judge=QuantileSummary.of(_values(row.judge_ms for row in rows)),
        ),
        short_latencies=sum(is_short(row.retrieval_ms, row.daemon_ms) for row in rows),
        failures=failure_lines((row.code, row.id, row.reason) for row in rows if not row.measured),
        incident=incidents[0] if incidents else None,
        mode_rule=outline.mode_rule,
        parts=list(outline.merged),
        questions=list(rows),
    )


class ReplayResultBuilder:
    """Collects the questions of a part."""

    def __init__(self, plan: ReplayPlan, part: Part) -> None:
        self._plan = plan
        self._part = part
        self.start = Start()
        self._rows: dict[str, LmeQuestion] = {}
        self.version: str | None = None
        self.reader = CallTotals()
        self.errors: list[MemconformError] = []
        """What ended the part early."""

    def add(self, row: LmeQuestion) -> None:
        """Add a question that is done."""
        self._rows[row.id] = row

    def result(self, missing: Callable[[Question], LmeQuestion]) -> LmeResult:
        """The result; `missing` makes the row of a question that was not reached."""
        plan, part = self._plan, self._part
        outline = PartOutline(
            name=part.name,
            is_control=part.control is not None,
            settings=plan.settings_of(part),
            build_hash=part.runner.build_hash() if part.runner else None,
            mode_rule=plan.mode_rule if part.control is None else None,
            command=plan.command,
        )
        return replay_result(
            outline,
            [self._rows.get(each.id) or missing(each) for each in plan.questions],
            [Incident.of(error) for error in self.errors],
            start=self.start,
            version=self.version,
            reader=RoleCost.of_calls(self.reader),
        )


def _exit_code(rows: Sequence[LmeQuestion], incidents: Sequence[Incident]) -> ExitCode:
    codes = [ExitCode(incident.exit_code) for incident in incidents]
    known = {incident.code for incident in incidents}
    # What an error that concerns all calls left unmeasured has that error's code.
    if any(not row.measured and row.code not in known for row in rows):
        codes.append(ExitCode.DAEMON)
    return gravest(codes)


def _values(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[bool]) -> float | None:
    return fmean(values) if values else None


def _score(scored: Accuracy) -> float | None:
    """The rate as the fraction that it is; its percentage, divided by 100, may be another float."""
    return None if scored.rate is None else scored.correct / scored.expected


def _fraction(rate: Estimate | None) -> float | None:
    return None if rate is None else rate.value / 100


def _interval(rate: Estimate | None) -> tuple[float, float] | None:
    return None if rate is None else (rate.low / 100, rate.high / 100)


def _category(scored: Accuracy) -> CategoryScore:
    return CategoryScore(
        questions=scored.expected,
        measured=scored.measured,
        correct=scored.correct,
        score=_score(scored),
        interval=_interval(scored.rate),
    )


def _retrieval(top_k: int, rows: Sequence[LmeQuestion]) -> dict[str, Estimate]:
    """The judge-free metrics of the sessions with an answer, over questions that have one."""
    scored = [row for row in rows if row.answer_session_ids and not row.abstention]
    if not scored or any(row.gold_retrieved is None for row in scored):
        return {}
    ks = [k for k in _KS if k <= top_k]
    values = [
        metrics(list(dict.fromkeys(hit.session for hit in row.hits)), row.answer_session_ids, ks)
        for row in scored
    ]
    ids = [row.id for row in scored]
    names = [f"{name}@{k}" for k in ks for name in _METRICS]
    return {
        name: estimate(fmean(column), mean_interval(column, ids))
        for name in names
        for column in [[each[name] for each in values]]
    }
