"""Names, prices, budget, limit and cache of language models."""

import asyncio
import json
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform import redaction
from memconform.errors import UsageError
from memconform.llm.accounting import estimate
from memconform.llm.budget import Ledger, read_budget
from memconform.llm.cache import CachedReply, ReplyCache, cache_key
from memconform.llm.chat import BudgetSpentError, ChatRequest, LedgerError, Message, Usage
from memconform.llm.limiter import Limiter
from memconform.llm.names import ModelName
from memconform.llm.prices import NANO, ModelTraits, Price, Prices
from memconform.llm.session import CallPolicy, LlmSession
from memconform.llm.settings import address, endpoint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai:gpt-4o", "openai:gpt-4o"),
        ("gpt-4o", "openai:gpt-4o"),
        ("o4-mini", "openai:o4-mini"),
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("gemini-2.5-flash", "gemini:gemini-2.5-flash"),
        ("ollama:llama3:8b", "ollama:llama3:8b"),
        ("fake", "fake:lexical-3"),
    ],
)
def test_a_model_names_its_provider(text: str, expected: str) -> None:
    assert str(ModelName.parse(text, {})) == expected


def test_jb_llm_provider_names_the_provider_of_any_other_model() -> None:
    assert str(ModelName.parse("llama3:8b", {"JB_LLM_PROVIDER": "ollama"})) == "ollama:llama3:8b"


@pytest.mark.parametrize("text", ["", "llama3", "llama3:8b", "openai:", ":gpt"])
def test_a_model_without_a_provider_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        ModelName.parse(text, {})
    assert raised.value.code == "unknown_provider"


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        endpoint(ModelName("anthropic", "claude-x"), {"OPENAI_API_KEY": "k"})


def test_the_vendors_variables_give_the_address() -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OLLAMA_HOST": "10.0.0.1:11434"}
    assert address(ModelName("openai", "m"), env) == "http://127.0.0.1:1/v1"
    assert address(ModelName("ollama", "m"), env) == "http://10.0.0.1:11434/v1"
    assert address(ModelName("ollama", "m"), {}) == "http://127.0.0.1:11434/v1"
    assert address(ModelName("anthropic", "m"), env) is None


def test_an_invalid_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as raised:
        address(ModelName("openai", "m"), {"OPENAI_BASE_URL": "user:secret@nowhere"})
    assert "secret" not in raised.value.message


def test_every_shipped_alias_stands_for_a_shipped_snapshot_of_equal_price() -> None:
    prices = Prices.load()
    for text in ("openai:gpt-4o", "openai:gpt-4.1-mini", "anthropic:claude-sonnet-4-5"):
        alias = prices.traits(ModelName.parse(text, {}))
        assert alias.floating
        assert alias.snapshot is not None
        pinned = prices.traits(ModelName(text.partition(":")[0], alias.snapshot))
        assert not pinned.floating
        assert pinned.price == alias.price
        assert pinned.sampling == alias.sampling


def test_a_users_prices_take_precedence_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        'as_of = "2026-01-01"\n[models."openai:gpt-4o"]\ninput = 1\noutput = 2\n', encoding="utf-8"
    )
    prices = Prices.load(file)
    assert prices.as_of == "2026-01-01"
    assert prices.traits(ModelName("openai", "gpt-4o")).price == Price(1, 2)
    assert prices.traits(ModelName("openai", "gpt-4o-mini")).price is not None


@pytest.mark.parametrize(
    "text",
    [
        "as_of = 1",
        'as_of = "x"\n[models."openai:m"]\ninput = 1\n',
        'as_of = "x"\n[models."m"]\ninput = 1\noutput = 1\n',
        'as_of = "x"\n[models."openai:m"]\ninput = -1\noutput = 1\n',
        'as_of = "x"\n[models."openai:m"]\ninput = nan\noutput = 1\n',
        'as_of = "yesterday"',
        'as_of = "2026-01-01"\n[models."openai:m"]\ninput = true\noutput = 1\n',
        'as_of = "2026-01-01"\n[models."openai:m"]\ninput = "0.2"\noutput = 1\n',
        'as_of = "2026-01-01"\n[providers.openai]\nsampling = {n = 100}\n',
        'as_of = "2026-01-01"\n[providers.openai]\nsampling = {max_completion_tokens = 9}\n',
        'as_of = "2026-01-01"\n[providers.openai]\nsampling = {temperature = nan}\n',
        "not toml",
    ],
)
def test_an_invalid_price_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"prices\.toml"):
        Prices.load(file)


def test_an_unpriced_model_is_refused_unless_allowed() -> None:
    env = {"OPENAI_API_KEY": "k"}
    name = ModelName("openai", "house-model")
    with pytest.raises(UsageError) as raised:
        LlmSession(Ledger(), env=env).model(name)
    assert raised.value.code == "unpriced_model"
    LlmSession(Ledger(), env=env, policy=CallPolicy(allow_unpriced=True)).model(name)


def test_a_cost_is_rounded_up_to_a_billionth() -> None:
    assert Price(2.5, 10.0).cost(Usage(1, 1)) == 12_500
    assert Price(0.0000001, 0).cost(Usage(1, 0)) == 1


@pytest.mark.parametrize("text", ["much", "nan", "inf", "-1", "1e10"])
def test_an_invalid_budget_variable_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="JB_EVAL_BUDGET_USD"):
        read_budget(None, {"JB_EVAL_BUDGET_USD": text})


def test_the_flag_takes_precedence_over_the_variable() -> None:
    assert read_budget(1.0, {"JB_EVAL_BUDGET_USD": "5"}) == 1.0
    assert read_budget(None, {"JB_EVAL_BUDGET_USD": "5"}) == 5.0
    assert read_budget(None, {}) is None


_CALLS = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 900)), min_size=1, max_size=60)


@settings(max_examples=300)
@given(calls=_CALLS, budget=st.integers(0, 3_000), most=st.integers(1, 20), seed=st.integers())
def test_spending_exceeds_the_budget_by_no_more_than_calls_in_flight_exceed_their_reservations(
    calls: list[tuple[int, int]], budget: int, most: int, seed: int
) -> None:
    ledger, order = Ledger(budget / NANO), random.Random(seed)
    in_flight: list[tuple[int, int]] = []
    at_last_call: list[tuple[int, int]] = []
    spent = 0
    for reserved, usage in calls:
        while len(in_flight) >= most or (in_flight and order.random() < 0.3):
            ledger.settle(*in_flight.pop(order.randrange(len(in_flight))))
        try:
            ledger.reserve(reserved)
        except BudgetSpentError:
            continue
        assert ledger.committed <= budget
        in_flight.append((reserved, usage))
        at_last_call = list(in_flight)
        spent += usage
    for ended in in_flight:
        ledger.settle(*ended)
    assert ledger.committed == spent
    assert spent <= budget + sum(max(0, usage - reserved) for reserved, usage in at_last_call)
    ledger.close()


def _spend(file: Path, budget: float, sums: "multiprocessing.Queue[int]") -> None:
    ledger, spent = Ledger(budget, file), 0
    while True:
        try:
            ledger.reserve(1_000)
        except BudgetSpentError:
            break
        ledger.settle(1_000, 700)
        spent += 700
    sums.put(spent)


def test_processes_that_share_a_ledger_share_the_budget(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    sums: multiprocessing.Queue[int] = context.Queue()
    file, budget = tmp_path / "ledger.sqlite3", 300_000
    workers = [context.Process(target=_spend, args=(file, budget / NANO, sums)) for _ in range(3)]
    for worker in workers:
        worker.start()
    total = sum(sums.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert total == Ledger(None, file).committed
    assert budget - 3 * 1_000 <= total <= budget


def test_a_process_that_died_leaves_its_reservation_spent(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    Ledger(1.0, file).reserve(NANO // 2)
    with pytest.raises(BudgetSpentError):
        Ledger(1.0, file).reserve(NANO // 2 + 1)


def test_a_free_call_needs_no_budget() -> None:
    ledger = Ledger(0.0)
    ledger.reserve(0)
    with pytest.raises(BudgetSpentError):
        ledger.reserve(1)


async def test_the_limit_falls_once_a_round_and_recovers() -> None:
    limiter = Limiter(16)
    for _ in range(5):
        limiter.throttled(0)
    assert limiter.limit == 8
    for _ in range(200):
        limiter.succeeded()
    assert limiter.limit == 16


async def test_no_more_calls_are_in_flight_than_the_limit() -> None:
    limiter, now, most = Limiter(3), 0, 0

    async def call() -> None:
        nonlocal now, most
        async with limiter.slot():
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*(call() for _ in range(20)))
    assert most == 3


_REQUEST = ChatRequest(
    messages=(Message("user", "hello"),), prompt_version="v1", max_output_tokens=10
)


def test_two_models_addresses_parameters_or_repetitions_share_no_entry() -> None:
    name, plain = ModelName("openai", "m"), ModelTraits()
    keys = {
        cache_key(name, None, plain, _REQUEST),
        cache_key(ModelName("openai", "n"), None, plain, _REQUEST),
        cache_key(ModelName("ollama", "m"), None, plain, _REQUEST),
        cache_key(name, "http://127.0.0.1:1/v1", plain, _REQUEST),
        cache_key(name, None, ModelTraits(sampling={"temperature": 0}), _REQUEST),
        cache_key(name, None, ModelTraits(sampling={"temperature": 1}), _REQUEST),
        cache_key(name, None, ModelTraits(min_output_tokens=99), _REQUEST),
        cache_key(name, None, plain, _REQUEST, 1),
        cache_key(name, None, plain, replace(_REQUEST, prompt_version="v2")),
        cache_key(name, None, plain, replace(_REQUEST, messages=(Message("user", "bye"),))),
    }
    assert len(keys) == 10
    with_schema = replace(_REQUEST, schema={"type": "object"})
    enforced = cache_key(name, None, ModelTraits(json_schema=True), with_schema)
    assert enforced != cache_key(name, None, plain, with_schema)


def test_prune_removes_what_is_older(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    for key in ("a" * 64, "b" * 64):
        cache.write(key, CachedReply("text", "m"))
    old = time.time() - 10 * 86_400
    [file] = tmp_path.glob("aa/*")

    os.utime(file, (old, old))
    assert cache.prune(5 * 86_400) == 1
    assert cache.read("b" * 64) == CachedReply("text", "m")
    assert cache.stats().entries == 1
    assert cache.prune() == 1


def test_a_reply_moved_to_another_key_is_not_read(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.write("a" * 64, CachedReply("text", "m"))
    target = tmp_path / "bb"
    target.mkdir()
    (tmp_path / "aa" / f"{'a' * 64}.json").rename(target / f"{'b' * 64}.json")
    assert cache.read("b" * 64) is None


def test_a_full_disk_loses_no_reply_and_leaves_no_half_entry(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from memconform.llm.cache import CachedReply, ReplyCache\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "ReplyCache(Path(sys.argv[1])).write('a' * 64, CachedReply('text', 'm'))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "replies are used but not kept" in ended.stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_lone_surrogate_of_a_daemon_does_not_end_a_run() -> None:
    message = Message("user", "half \ud83d of a pair")
    assert message.content == "half \ufffd of a pair"
    request = replace(_REQUEST, messages=(message,))
    assert estimate(request, ModelTraits()).input > 0
    assert cache_key(ModelName("openai", "m"), None, ModelTraits(), request)


def test_a_reply_with_a_secret_is_not_cached(tmp_path: Path) -> None:
    """It came back with the mask in it, and was judged as another answer."""
    redaction.hide("canary-0123456789")
    redaction.hide("1")
    cache = ReplyCache(tmp_path)
    for reply in ("It is canary-0123456789.", '{"reason": "canary-0123456789", "score": 1}'):
        cache.write("a" * 64, CachedReply(reply, "m"))
        assert cache.read("a" * 64) is None
    # Numbers are no secrets.
    cache.write("a" * 64, CachedReply('{"reason": "right", "score": 1}', "canary-0123456789"))
    kept = cache.read("a" * 64)
    assert kept is not None
    assert json.loads(kept.text)["score"] == 1
    [file] = tmp_path.glob("aa/*")
    assert b"canary" not in file.read_bytes()


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-\r1", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(UsageError) as raised:
        endpoint(ModelName("openai", "m"), {"OPENAI_API_KEY": key})
    assert raised.value.code == "bad_api_key"
    assert key not in raised.value.message


def test_a_locked_ledger_ends_the_calls_and_loses_no_settlement(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    ledger = Ledger(1.0, file)
    ledger._db.execute("PRAGMA busy_timeout = 50")
    ledger.reserve(1_000)
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError):
            ledger.reserve(1_000)
        ledger.settle(1_000, 10)
        other.execute("COMMIT")
    assert ledger.committed == 1_000
