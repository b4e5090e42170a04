"""Authentication: required tokens, rejections, and valid tokens."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.cli import main
from memoryd.config import Config

_TOKEN = "t0ken-of-the-test"  # noqa: S105 - of this test alone


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Config.from_env(tmp_path, {}, _TOKEN))) as client:
        yield client


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ([], 401),
        (["Basic " + _TOKEN], 401),
        (["Bearer"], 401),
        (["Bearer  "], 401),
        ([_TOKEN], 401),
        ([""], 401),
        (["Bearer " + _TOKEN] * 2, 401),
        (["Bearer " + _TOKEN + "x"], 403),
        (["Bearer x"], 403),
        (["Bearer " + _TOKEN + " x"], 403),
        (["Bearer \xe9"], 403),
        (["Bearer \t" + _TOKEN], 403),
        (["Bearer   " + _TOKEN], 201),
        (["Bearer " + _TOKEN], 201),
        (["bEARER " + _TOKEN], 201),
    ],
)
def test_a_request_needs_the_token(http: TestClient, values: list[str], status: int) -> None:
    headers = [(b"Authorization", value.encode("latin-1")) for value in values]
    answer = http.post("/v1/brains", json={"brainId": "b"}, headers=headers)
    assert answer.status_code == status
    assert (answer.headers.get("www-authenticate") == "Bearer") == (status == 401)
    if status != 201:
        assert answer.json()["code"] == {401: "unauthorized", 403: "forbidden"}[status]
        assert _TOKEN not in answer.text
    allowed = {"Authorization": f"Bearer {_TOKEN}"}
    brains = http.get("/v1/brains", headers=allowed).json()["items"]
    assert bool(brains) == (status == 201)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/version"),
        ("GET", "/nowhere"),
        ("PATCH", "/v1/brains"),
        ("GET", "/v1/brains/b%2Fc"),
        ("GET", "/healthz/"),
        ("GET", "/%68ealthz"),
        ("POST", "/v1/brains/b/search"),
        ("GET", "/v1/brains/b/events"),
    ],
)
def test_every_route_needs_the_token_even_unknown_ones(
    http: TestClient, method: str, path: str
) -> None:
    assert http.request(method, path).status_code == 401


def test_healthz_needs_no_token(http: TestClient) -> None:
    assert http.get("/healthz").json() == {"ok": True}


def test_a_daemon_without_a_token_is_open(tmp_path: Path) -> None:
    with TestClient(create_app(Config.from_env(tmp_path, {}))) as http:
        assert http.get("/version", headers={"Authorization": "Bearer x"}).is_success


@pytest.mark.parametrize("token", ["", " ", "canary 7", "canary\t7", "canary\x7f", "canary\xe9"])
@pytest.mark.parametrize("by_flag", [True, False])
def test_an_invalid_token_prevents_the_start(
    tmp_path: Path,
    token: str,
    *,
    by_flag: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flag = [f"--auth-token={token}"] if by_flag else []
    monkeypatch.setenv("JB_AUTH_TOKEN", "good" if by_flag else token)
    with pytest.raises(SystemExit) as stop:
        main(["serve", "--addr", "127.0.0.1:0", "--root", str(tmp_path), *flag])
    assert stop.value.code == 2
    output = capsys.readouterr()
    assert "JB_AUTH_TOKEN" in output.err
    assert "canary" not in output.err + output.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--auth-token", "my", "canary"],
        ["--auth-token", "my", "canary", "serve"],
        ["serve", "--auth-tok", "canary"],
        ["serve", "--auth-tokencanary"],
        ["canary"],
    ],
)
def test_unknown_arguments_are_not_repeated(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    output = capsys.readouterr()
    assert "canary" not in output.err + output.out


def test_the_flag_overrides_the_variable(tmp_path: Path) -> None:
    config = Config.from_env(tmp_path, {"JB_AUTH_TOKEN": "no token"}, _TOKEN)
    assert config.auth_token == _TOKEN
    assert Config.from_env(tmp_path, {"JB_AUTH_TOKEN": _TOKEN}).auth_token == _TOKEN
    assert _TOKEN not in repr(config)
