"""Limits of a machine end in a sentence, and children get what works."""

import errno
import os
import pwd
import resource
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from memconform.cli import main as program
from memconform.cli.bench import plan
from memconform.cli.bench.options import BenchOptions
from memconform.contract.wire import Profile
from memconform.daemons import limits, ports
from memconform.daemons.build import ensure_built
from memconform.daemons.environment import BUDGET_SERVER, for_build, for_daemon
from memconform.daemons.manifest import Capabilities, Manifest, Serve
from memconform.errors import ExitCode, UsageError, limit_error, limit_hint
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.network import Proxy
from memconform.network_transport import ShellTransport, way_options
from memconform.printing.errors import render_error
from memconform.user_cache import builds_folder, cache_folder, downloads_folder


def _wrapped(cause: BaseException) -> RuntimeError:
    error = RuntimeError("a library")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too_many_files"),
        (OSError(errno.ENFILE, "x"), "too_many_files"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "too_many_processes"),
        (RuntimeError("can't start new thread"), "too_many_processes"),
        (MemoryError(), "out_of_memory"),
        (OSError(errno.ENOSPC, "x"), "disk_full"),
        (ImportError("x.so: failed to map segment from shared object"), "out_of_memory"),
        (_wrapped(OSError(errno.EMFILE, "x")), "too_many_files"),
        (
            Exception('called on an `Err` value: Os { code: 24, kind: Other, message: "x" }'),
            "too_many_files",
        ),
    ],
)
def test_an_error_of_a_limit_is_a_sentence(error: BaseException, code: str) -> None:
    found = limit_error(error)
    assert found is not None
    assert found.code == code
    assert found.exit_code == ExitCode.USAGE
    assert found.hint


@pytest.mark.parametrize("error", [ValueError("x"), OSError(errno.ENOENT, "x"), KeyError("a")])
def test_any_other_error_is_a_bug(error: BaseException) -> None:
    assert limit_error(error) is None


def test_a_full_disk_is_named_with_its_file_and_its_remedy() -> None:
    """An error of a named file was `path_unusable` without a remedy."""
    found = limit_error(OSError(errno.ENOSPC, "No space left on device", "/a/journal.jsonl"))
    assert found is not None
    assert "/a/journal.jsonl" in found.message
    assert "/a/b" not in limit_error(OSError(errno.EMFILE, "x", "/a/b")).message  # type: ignore[union-attr] # not None


def test_an_error_that_few_files_may_have_caused_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (32, 32))
    found = limit_error(KeyError("a bug"))
    assert found is not None
    assert found.code == "too_many_files"
    assert "KeyError: 'a bug'" in render_error(found)


def test_what_another_process_reports_names_the_limit() -> None:
    assert "ulimit -u" in limit_hint(f"node: {os.strerror(errno.EAGAIN)}")
    assert limit_hint("node: No such file or directory") == ""


def _ending(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(program, "cli", fail)
    monkeypatch.setattr(program, "prepare_streams", lambda: None)
    monkeypatch.setattr(program, "adopt_orphans", lambda: None)
    monkeypatch.setattr(program, "_tolerate_warnings", lambda: None)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


class _PanicError(BaseException):
    """As extensions in Rust raise it."""


def test_a_panic_of_a_library_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended in exit code 1."""
    assert _ending(monkeypatch, _PanicError("Os { code: 24, kind: Other }")) == ExitCode.USAGE
    assert "Traceback" not in capsys.readouterr().err
    assert _ending(monkeypatch, _PanicError("index out of bounds")) == ExitCode.INTERNAL


def test_an_error_of_tasks_that_ran_together_is_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`conform` without a loopback interface ended as a bug of memconform."""
    error = UsageError("a program cannot connect to itself", code="no_loopback")
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [error]), ValueError("x")])
    assert _ending(monkeypatch, group) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("no_loopback: ")


@pytest.fixture
def file_limit(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The limits of a process, which start at 64 of 128; each change is appended."""
    current = [(64, 128)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: current[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: current.append(new))
    return current


def test_few_connections_leave_the_limit_alone(file_limit: list[tuple[int, int]]) -> None:
    limits.allow_files(32)
    assert file_limit == [(64, 128)]


def test_a_soft_limit_is_raised(file_limit: list[tuple[int, int]]) -> None:
    limits.allow_files(64)
    assert file_limit[-1] == (96, 128)


def test_64_files_are_too_few_for_256_questions_at_a_time(
    file_limit: list[tuple[int, int]],
) -> None:
    with pytest.raises(UsageError) as caught:
        limits.allow_files(256)
    assert caught.value.code == "too_few_files"
    assert caught.value.hint == "raise the limit with `ulimit -n 288`, or use --concurrency 96"
    assert file_limit == [(64, 128)]
    assert resource.RLIM_INFINITY not in file_limit[-1]


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user without a passwd entry got a traceback."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "MEMCONFORM_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for folder, variable in (
        (cache_folder, "XDG_CACHE_HOME"),
        (builds_folder, "XDG_CACHE_HOME"),
        (downloads_folder, "XDG_DATA_HOME"),
    ):
        with pytest.raises(UsageError, match=variable) as caught:
            folder()
        assert caught.value.code == "no_home"
    # What needs no place is not refused: replies are used, and not kept.
    replies = ReplyCache()
    replies.write("k" * 64, CachedReply("yes", "fake"))
    assert replies.read("k" * 64) is None
    with pytest.raises(UsageError):
        replies.stats()
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/memconform")


@pytest.fixture
def _fresh_loopback() -> None:
    ports.loopback_host.cache_clear()


@pytest.mark.usefixtures("_fresh_loopback")
def test_daemons_listen_at_the_loopback_address_that_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ports, "accepts", lambda host: None if host == "::1" else "no such address")
    assert ports.loopback_host() == "::1"
    ports.loopback_host.cache_clear()
    monkeypatch.setattr(ports, "accepts", lambda _: "Network is unreachable")
    with pytest.raises(UsageError) as caught:
        ports.loopback_host()
    assert caught.value.code == "no_loopback"
    ports.loopback_host.cache_clear()


@pytest.mark.parametrize("proxy", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_never_comes_between_a_daemon_and_loopback(proxy: str) -> None:
    env = for_daemon({proxy: "http://proxy:3128", "NO_PROXY": "intern.example,127.0.0.1"})
    assert env["NO_PROXY"] == env["no_proxy"] == "intern.example,127.0.0.1,localhost,::1"
    assert env[proxy] == "http://proxy:3128"


def test_a_daemon_without_a_proxy_gets_no_exception_from_it() -> None:
    assert for_daemon({"PATH": "/bin"}) == {"PATH": "/bin"}


def test_children_get_no_path_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {name: str(tmp_path / "gone") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")}
    assert for_daemon(gone) == {}
    there = dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR"), str(tmp_path))
    assert for_daemon(there) == there
    for name, value in gone.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    env = for_build(tmp_path)
    assert gone.keys().isdisjoint(env)
    assert env["HTTPS_PROXY"] == "http://proxy:3128"


@pytest.mark.parametrize("home", ["", "relative", "/proc/nowhere"])
def test_a_build_has_a_home_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    assert for_build(tmp_path)["HOME"] == str(tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert for_build(tmp_path)["HOME"] == str(tmp_path)


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({"HTTPS_PROXY": "ftp://proxy"}, "bad_proxy"),
        ({"ALL_PROXY": "http://[::1"}, "bad_proxy"),
        ({"SSL_CERT_FILE": "/nowhere/cacert.pem"}, "bad_certificates"),
    ],
)
def test_a_download_names_the_variable(env: dict[str, str], code: str) -> None:
    with (
        httpx.Client(transport=ShellTransport(env), trust_env=False) as http,
        pytest.raises(UsageError) as caught,
    ):
        http.get("https://files.invalid/x")
    assert caught.value.code == code
    assert any(name in caught.value.message for name in env)


async def test_an_sdk_without_a_build_needs_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memconform.daemons.build.builds_folder", lambda: pytest.fail("asked for"))
    manifest = Manifest(
        name="mine",
        language="c",
        serve=Serve(argv=["./mine"]),
        capabilities=Capabilities(profiles=[Profile.CORE], modes=["auto"]),
    )
    await ensure_built(manifest, tmp_path, "0" * 64, lambda _: None)


def test_a_proxy_by_tls_needs_certificates_although_the_server_does_not(tmp_path: Path) -> None:
    """A download by http named the proxy, and not the file that was missing."""
    env = {"HTTP_PROXY": "https://127.0.0.1:9", "SSL_CERT_FILE": str(tmp_path / "gone.pem")}
    with (
        httpx.Client(transport=ShellTransport(env), trust_env=False) as client,
        pytest.raises(UsageError) as caught,
    ):
        client.get("http://services.invalid/")
    assert caught.value.code == "bad_certificates"
    assert "gone.pem" in caught.value.message


def test_tls_with_a_proxy_goes_by_a_context_of_ours() -> None:
    proxy = Proxy("https://proxy.example:3128", "HTTPS_PROXY")
    options = way_options(httpx, "https://service.example", proxy, None)
    assert options["proxy"].ssl_context is options["verify"]
    plain = way_options(httpx, "http://service.example", replace(proxy, url="http://p:1"), None)
    assert plain["proxy"].ssl_context is None


@pytest.mark.parametrize(
    ("free", "memory", "size", "code"),
    [
        (1 << 20, resource.RLIM_INFINITY, resource.RLIM_INFINITY, "disk_full"),
        (1 << 30, resource.RLIM_INFINITY, 64 << 10, "disk_full"),
        (1 << 30, 200 << 20, resource.RLIM_INFINITY, "out_of_memory"),
        (1 << 30, resource.RLIM_INFINITY, 1 << 30, "too_few_files"),
    ],
)
def test_a_machine_on_which_a_correct_daemon_fails_is_refused(
    free: int, memory: int, size: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`conform` on a full disk, and with little memory, said NOT conformant."""
    allowed = {
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_FSIZE: (size, size),
        resource.RLIMIT_NOFILE: (20, 20),
    }
    monkeypatch.setattr("memconform.daemons.limits.resource.getrlimit", allowed.__getitem__)
    monkeypatch.setattr("memconform.daemons.limits.shutil.disk_usage", lambda _: Mock(free=free))
    with pytest.raises(UsageError) as caught:
        limits.require_room(tmp_path / "results", 32)
    assert caught.value.code == code
    assert caught.value.hint


def test_this_machine_has_room(tmp_path: Path) -> None:
    limits.require_room(tmp_path / "results", 1)


def test_no_folder_for_temporary_files_is_no_bug() -> None:
    """`ulimit -f 0` ended in `internal_error`."""
    error = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    found = limit_error(error)
    assert found is not None
    assert found.code == "folder_unwritable"


@pytest.mark.parametrize("sdks", [("py",), ("py", "go")])
async def test_a_bench_with_too_few_files_says_so_before_anything_is_read_or_built(
    file_limit: list[tuple[int, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sdks: tuple[str, ...],
) -> None:
    """It was said of each daemon that was about to start, after the benchmark was scanned."""
    monkeypatch.setattr(plan, "build_runners", _unexpected)
    monkeypatch.setattr(plan, "open_benchmark", _unexpected)
    options = BenchOptions(
        sdk=sdks, suite="sample", index="shared", modes="bm25", upstream="own",
        output=tmp_path, concurrency=256, log_level="warning",
    )  # fmt: skip
    with pytest.raises(UsageError, match="need 288 open files, and 128 are allowed"):
        await plan.plan_bench(options, lambda _: None)
    assert not any(os.scandir(tmp_path))
    assert file_limit == [(64, 128)]
    with pytest.raises(AssertionError, match="reached"):
        await plan.plan_bench(replace(options, concurrency=64), lambda _: None)
    assert file_limit[-1] == (96, 128)


def _unexpected(*_: object) -> None:
    raise AssertionError("reached")


def test_a_build_does_not_learn_how_to_spend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BUDGET_SERVER, "80:secret")
    assert BUDGET_SERVER not in for_build(tmp_path)
