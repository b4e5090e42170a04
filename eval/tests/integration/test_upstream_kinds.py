"""`--upstream own|scripted|real`, and `memconform upstream` as a command."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import anthropic
import httpx
import openai
import psutil
import pytest

from tests.conftest import CHECKOUT, WAIT_SECONDS, Ended
from tests.integration.serving import upstream_by_hand
from tests.program import PROGRAM
from tests.waiting import wait_until

Call = Callable[..., Ended]

_PY = ("--sdk", str(CHECKOUT / "sdks" / "py"))
_SMOKE = ("--dataset", "smoke", "--scorer", "exact", "--seed-reference-brain", "--limit", "4")
_KEY = "sk-a-real-looking-canary"


def test_real_services_come_from_the_shell_s_variables(
    memconform: Call, environment: dict[str, str], workspace: Path
) -> None:
    with upstream_by_hand(environment) as address:
        environment |= {
            "JB_LLM_PROVIDER": "openai",
            "JB_LLM_MODEL": "some-model",
            "JB_EMBED_PROVIDER": "fake",
            "OPENAI_API_KEY": _KEY,
            "OPENAI_BASE_URL": f"{address}/v1",
        }
        ended = memconform("run", *_PY, *_SMOKE, "--upstream", "real")
        assert ended.code == 0, ended.err
        sent = httpx.get(f"{address}/_control/requests", trust_env=False).json()["requests"]
    # Includes the warm-up question.
    assert [request["body"]["model"] for request in sent] == ["some-model"] * 5
    written = [p for p in (workspace / "results").rglob("*") if p.is_file()]
    assert written
    for path in written:
        assert _KEY.encode() not in path.read_bytes(), path
    assert _KEY not in ended.out + ended.err


def test_real_upstream_requires_a_provider_variable(
    memconform: Call, environment: dict[str, str]
) -> None:
    environment.pop("OPENAI_API_KEY")
    ended = memconform("run", *_PY, *_SMOKE, "--upstream", "real")
    assert ended.code == 2
    assert "OPENAI_API_KEY" in ended.err


def test_fake_provider_does_not_count_as_a_real_service(memconform: Call) -> None:
    # The shell has the canary key only: no provider is configured, and none may be assumed.
    ended = memconform("run", *_PY, *_SMOKE, "--upstream", "real")
    assert ended.code == 3
    assert "no reader" in ended.err


_ELSEWHERE = {
    "JB_LLM_PROVIDER": "openai",
    "JB_LLM_MODEL": "m",
    "JB_RERANK_PROVIDER": "http",
    "JB_RERANK_URL": "http://127.0.0.1:9/rerank",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "JB_EMBED_PROVIDER": "none",
}


@pytest.mark.parametrize("kind", ["own", "scripted"])
def test_shell_s_services_are_called_only_with_upstream_real(
    memconform: Call, environment: dict[str, str], kind: str
) -> None:
    environment |= _ELSEWHERE
    ended = memconform("run", *_PY, *_SMOKE, "--mode", "hybrid", "--upstream", kind)
    assert ended.code == 0, ended.err
    assert ended.result["provenance"]["settings"]["variables"] == {}
    assert ended.result["served_modes"] == {"hybrid": 4}


def test_variables_of_the_command_line_take_precedence_and_are_recorded(memconform: Call) -> None:
    ended = memconform(
        *("run", *_PY, *_SMOKE, "--scenario", "search-retrieve-only", "--mode", "bm25"),
        *("--env", "JB_EMBED_PROVIDER=none", "--env", f"MY_API_KEY={_KEY}", "--allow-fallback"),
        *("--env", "JB_RERANK_URL=http://user:pass-word@host/"),
    )
    assert ended.code == 0, ended.err
    assert ended.result["provenance"]["settings"]["variables"] == {
        "JB_EMBED_PROVIDER": "none",
        "JB_RERANK_URL": "http://(hidden)@host/",
        "MY_API_KEY": "(hidden)",
    }
    assert ended.result["seeded"]["vectors"] == 0
    for path in (ended.folder / "results").rglob("*"):
        if path.is_file():
            assert _KEY.encode() not in path.read_bytes(), path
            assert b"pass-word" not in path.read_bytes(), path


def test_answers_of_another_upstream_are_no_scores_of_the_scripted_one(
    memconform: Call, environment: dict[str, str]
) -> None:
    """A daemon that ignored the address had a pass rate like that of the scripted reader."""
    with upstream_by_hand(environment) as address:
        ended = memconform(
            *("run", *_PY, *_SMOKE, "--upstream", "scripted", "--scenario", "ask-basic"),
            *("--env", f"OPENAI_BASE_URL={address}/v1"),
        )
    assert ended.code == 3
    assert "upstream_not_called" in ended.err
    result = ended.result
    assert (result["pass_rate"], result["counts"]["daemon_error"]) == (None, 4)
    assert (result["upstream"]["answered"], result["upstream"]["asked"]) == (4, 0)
    assert result["upstream"]["elsewhere"] == [address.removeprefix("http://")]
    assert address.removeprefix("http://") in ended.err


@pytest.mark.parametrize("text", ["X", "=x", "A B=x", "1=x"])
def test_rejects_an_invalid_variable(memconform: Call, text: str) -> None:
    ended = memconform("run", *_PY, *_SMOKE, "--env", text)
    assert (ended.code, "bad_env" in ended.err) == (2, True)


def test_resume_rejects_another_model(memconform: Call, workspace: Path) -> None:
    flags = ("run", *_PY, *_SMOKE, "--quiet")
    assert memconform(*flags, "--env", "JB_LLM_MODEL=one").code == 0
    [run] = (workspace / "results" / "runs").iterdir()
    resumed = memconform(*flags, "--env", "JB_LLM_MODEL=two", "--resume", run.name)
    assert (resumed.code, "resume_mismatch" in resumed.err) == (2, True)
    assert memconform(*flags, "--env", "JB_LLM_MODEL=one", "--resume", run.name).code == 0


def test_crashed_upstream_ends_the_run_and_is_named(
    environment: dict[str, str], workspace: Path
) -> None:
    with subprocess.Popen(
        [PROGRAM, "run", *_PY, *_SMOKE[:-2], "--upstream", "scripted", "--repeat", "100"],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            journals = workspace.glob
            wait_until(
                lambda: any(
                    '"judgement"' in path.read_text()
                    for path in journals("results/runs/*/journal.jsonl")
                )
            )
            for child in psutil.Process(process.pid).children(recursive=True):
                if "memconform.upstream" in child.cmdline() and "-S" not in child.cmdline():
                    child.kill()
            _, err = process.communicate(timeout=WAIT_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 3
    assert "its upstream ended, killed by SIGKILL" in err
    [path] = workspace.glob("results/runs/*/result.json")
    counts = json.loads(path.read_text())["counts"]
    assert (counts["incorrect"], counts["abstained"]) == (0, 0)
    assert counts["not_run"] > 0


def test_user_s_own_daemon_has_no_upstream(memconform: Call) -> None:
    ended = memconform("run", "--sdk", "url:http://127.0.0.1:9", *_SMOKE, "--upstream", "scripted")
    assert ended.code == 2
    assert "no_upstream" in ended.err


def test_mode_that_needs_an_upstream_is_not_claimed_without_one(memconform: Call) -> None:
    flags = (*_PY, *_SMOKE, "--scenario", "search-retrieve-only", "--mode", "hybrid-rerank")
    assert memconform("run", *flags).code == 2
    ended = memconform("run", *flags, "--upstream", "scripted")
    assert ended.code == 0, ended.err
    [folder] = (ended.folder / "results" / "runs").glob("*")
    assert json.loads((folder / "result.json").read_text())["served_modes"] == {"hybrid-rerank": 4}
    assert not (folder / "upstream" / "state").exists()


def test_answer_is_the_fake_reader_s_with_its_note(memconform: Call) -> None:
    own = memconform("run", *_PY, *_SMOKE, "--output", "own")
    scripted = memconform("run", *_PY, *_SMOKE, "--output", "scripted", "--upstream", "scripted")
    assert (own.code, scripted.code) == (0, 0)

    def answers(output: str) -> list[str]:
        [path] = (own.folder / output / "runs").glob("*/result.json")
        return [question["answer"] for question in json.loads(path.read_text())["questions"]]

    assert answers("scripted") == [f"{answer} [1]" for answer in answers("own")]


def test_failing_upstream_is_a_daemon_error_not_a_wrong_answer(
    memconform: Call, environment: dict[str, str], workspace: Path
) -> None:
    script = workspace / "script.json"
    script.write_text(json.dumps({"rules": [{"kind": "chat", "reply": {"fault": "cut"}}]}))
    with upstream_by_hand(environment, "--script", script) as address:
        environment |= {
            "JB_LLM_PROVIDER": "openai",
            "JB_LLM_MODEL": "m",
            "JB_EMBED_PROVIDER": "fake",
            "OPENAI_BASE_URL": f"{address}/v1",
        }
        ended = memconform("run", *_PY, *_SMOKE, "--upstream", "real")
    assert ended.code == 3
    counts = ended.result["counts"]
    assert (counts["daemon_error"], counts["incorrect"], counts["abstained"]) == (4, 0, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"rules": [{"reply": {"stauts": 500}}]}', "rules.0.reply.stauts"),
        ('{"rules": [{"reply": {"text": "a", "deltas": ["b"]}}]}', "mutually exclusive"),
        ("{", "script.json"),
    ],
)
def test_names_an_invalid_script(
    memconform: Call, workspace: Path, text: str, message: str
) -> None:
    (workspace / "script.json").write_text(text)
    ended = memconform("upstream", "--script", "script.json")
    assert ended.code == 2
    assert message in ended.err
    assert "script.json" in ended.err


@pytest.mark.parametrize("addr", ["nowhere", "127.0.0.1:99999", "127.0.0.1:"])
def test_rejects_an_invalid_address(memconform: Call, addr: str) -> None:
    ended = memconform("upstream", "--addr", addr)
    assert (ended.code, "bad_addr" in ended.err) == (2, True)


def test_vendor_clients_work_against_the_upstream(environment: dict[str, str]) -> None:
    prompt = "Notes:\nThe kiln is hot.\n\nQuestion: Is the kiln hot?"
    with upstream_by_hand(environment) as address:
        for base in (f"{address}/v1", address):
            with openai.OpenAI(base_url=base, api_key="k", max_retries=0) as client:
                chat = client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": prompt}]
                )
                assert chat.choices[0].message.content == "The kiln is hot."
                assert "extractive" in {model.id for model in client.models.list()}
                # By default the client requests base64 and decodes it.
                [item] = client.embeddings.create(model="fh256-1", input="the kiln").data
                assert len(item.embedding) == 256
        with anthropic.Anthropic(base_url=address, api_key="k", max_retries=0) as claude:
            with claude.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": prompt}]
            ) as stream:
                assert stream.get_final_text() == "The kiln is hot."
            counted = stream.get_final_message().usage
            assert counted.output_tokens == 4


def test_control_replaces_the_script_and_refuses_an_invalid_one(
    environment: dict[str, str],
) -> None:
    with (
        upstream_by_hand(environment) as address,
        httpx.Client(base_url=address, trust_env=False) as http,
    ):
        body = {"messages": [{"role": "user", "content": "Question: x"}], "model": "m"}
        rule = {"reply": {"status": 429, "retry_after": 2}, "times": 1}
        assert http.put("/_control/script", json={"rules": [rule]}).status_code == 204
        refused = http.post("/v1/chat/completions", json=body, headers={"x-api-key": _KEY})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
        assert http.post("/v1/chat/completions", json=body).status_code == 200
        assert http.put("/_control/script", json={"rules": 7}).status_code == 400
        assert http.post("/v1/chat/completions", content=b"{").status_code == 400
        assert http.post("/v1/chat/completions", content=b"[" * 100_000).status_code == 400
        assert http.post("/v1/chat/completions", content=b'{"x": NaN}').status_code == 400
        odd = body | {"stream": True, "stream_options": 5}
        assert http.post("/v1/chat/completions", json=odd).status_code == 400
        assert http.post("/v1/embeddings", json={"input": []}).status_code == 400
        assert http.post("/v1/messages", json=body).status_code == 400
        kept = http.get("/_control/requests").json()["requests"]
    outcomes = [request["outcome"] for request in kept]
    assert outcomes == ["refused", "answered", "refused", "refused"]
    assert kept[0]["headers"]["x-api-key"] == "***"


def test_prompts_belong_to_their_question_with_repeat(
    memconform: Callable[..., Ended],
) -> None:
    """With --repeat a question was recorded with the prompts of the one before it."""
    ended = memconform("run", *_PY, *_SMOKE, "--upstream", "scripted", "--repeat", "2")
    assert ended.code == 0, ended.err
    prompts = {
        question["id"]: question["seen"]["prompts"] for question in ended.result["questions"]
    }
    assert {len(sent) for sent in prompts.values()} == {1}
    texts = {json.dumps(sent, sort_keys=True) for sent in prompts.values()}
    assert len(texts) == len(prompts)
