"""What a merged result may have otherwise than the result of one run: times, hosts and ids."""

import json
from pathlib import Path
from typing import Any

_TIMES = {
    *("started_at", "finished_at", "took_s", "took_ms", "latency", "latency_ms", "timings"),
    *("latency_p50_ms", "search_ms", "searchMs", "retrieval_ms", "reader_ms", "judge_ms"),
    *("daemon_ms", "ingest_s", "documents_per_s", "overhead_ms", "rerank_adds_ms"),
    *("short_latencies", "after_ms"),
}
_HOSTS = {"ready_ms", "rss_peak_bytes", "cpu_seconds", "disk_bytes", "curl", "behaviour"}
_IDS = {"run_id", "run", "brain", "command", "parts", "resumed_from", "answers_sha256"}
_SESSIONS = {"verification", "upstream"}
"""How often each session verified its index, and warmed up."""
_CALLS = {"cost_accounting", "cached", "cost_usd", "input_tokens", "output_tokens"}
"""What the cache of replies answered, which an earlier run may have filled."""
_OWN = _TIMES | _HOSTS | _IDS | _SESSIONS | _CALLS


def comparable(path: Path) -> str:
    """A result as text, without what may differ."""
    return json.dumps(_stripped(json.loads(path.read_text())), indent=1)


def _stripped(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: _stripped(each)
                for name, each in value.items()
                if name not in _OWN and not (name == "path" and str(each).endswith("result.json"))
            }
        case list():
            return [_stripped(each) for each in value]
    return value
