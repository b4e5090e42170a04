"""Results of `load`, as the verb writes them."""

from datetime import UTC, datetime
from typing import Any

from memconform.contract.wire import Mode
from memconform.load.generator import Sample
from memconform.load.records import LatenessRecord, LoadReport, SdkLoad, StepRecord
from memconform.load.tally import Tally
from memconform.load.verdict import saturation
from memconform.records import Failure

_OVERLOADED = Failure(code="harness_overloaded", message="the harness is overloaded")


def load_step(
    rate: float, latency_s: float = 0.01, *, measured: bool = True, saturated: bool = False
) -> StepRecord:
    """A step with a thousand searches of one latency."""
    tally = Tally(["search"], 10)
    for n in range(1_000):
        tally.add(Sample("search", None, n / 100, n / 100, n / 100 + latency_s, 0))
    operations = tally.operations()
    if not measured:
        nothing = {"latency": None, "service": None}
        operations = [each.model_copy(update=nothing) for each in operations]
    return StepRecord(
        rate=rate,
        workers=None,
        duration_s=10,
        took_s=10,
        status="measured" if measured else "not_measured",
        saturated=saturated if measured else None,
        reasons=["the queue grows"] if saturated else [],
        failure=None if measured else _OVERLOADED,
        offered=1_000,
        sent=1_000,
        answered=1_000,
        offered_per_s=rate,
        achieved_per_s=rate if measured else None,
        in_flight_max=1,
        in_flight_quarters=[0, 0, 0, 0],
        operations=operations,
        slow_readers=None,
        lateness=LatenessRecord(p50_ms=0.1, p99_ms=1, max_ms=2, limit_ms=25, cpu_cores=0.1),
        daemon=None,
        machine_cores=2,
        machine_cores_busy=0.4,
    )


def load_report(sdks: dict[str, list[StepRecord]], **changes: Any) -> dict[str, Any]:
    """A report of these steps, as JSON."""
    report = LoadReport(
        started_at=datetime(2026, 11, 27, 8, tzinfo=UTC),
        exit_code=0,
        harness_version="0.1.0",
        command=["memconform", "load"],
        python_version="3.11.7",
        host="Linux x86_64",
        git_revision=None,
        run_id="20261127T080000000Z-go-load-0001",
        took_s=30,
        dataset="lme",
        dataset_sha256="0" * 64,
        questions=100,
        mode=Mode.BM25,
        top_k=10,
        upstream="own",
        seed=1,
        duration_s=10,
        mix={"search": 1.0},
        timeout_s=60,
        in_flight_limit=512,
        most_p99_ms=None,
        sdks=[
            SdkLoad(
                sdk=sdk,
                version="1",
                build_hash=None,
                variables={},
                ready_ms=10,
                seed=None,
                steady_questions=100,
                steps=steps,
                saturation=saturation(steps),
                incident=None,
            )
            for sdk, steps in sdks.items()
        ],
    )
    return report.model_dump(mode="json") | changes
