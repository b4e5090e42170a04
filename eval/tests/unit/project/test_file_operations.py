"""What strace prints is read, and repeated, call by call."""

from pathlib import Path

import pytest

from tests.integration.file_operations import Call, Replay, UnsupportedCallError, calls


def _hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def test_a_call_that_another_interrupts_ends_where_it_is_resumed() -> None:
    lines = [
        f'7 1.5 mkdir("{_hex("/a")}", 0777 <unfinished ...>\n',
        f'8 1.6 unlink("{_hex("/b")}") = 0\n',
        f'9 1.7 unlink("{_hex("/c")}") = -1 ENOENT (No such file or directory)\n',
        "8 1.7 --- SIGTERM {si_signo=SIGTERM} ---\n",
        "7 1.8 <... mkdir resumed>) = 0\n",
    ]
    assert list(calls(lines)) == [
        Call(1.6, "unlink", (_hex("/b"),), 0),
        Call(1.8, "mkdir", (_hex("/a"), "0777"), 0),
    ]


def test_what_is_written_may_contain_commas_and_brackets(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    replay = Replay(home, copy, tmp_path)
    text = 'é, ") = 1'
    name = _hex(f"{home}/x")
    lines = [
        f'1 1.0 openat(AT_FDCWD<{_hex("/")}>, "{name}", O_RDWR|O_CREAT, 0644) = 5<{name}>\n',
        f'1 1.0 write(5<{name}>, "{_hex(text)}", 10) = 10\n',
        f'1 1.0 write(5<{name}>, "{_hex("end")}", 3) = 2\n',
        f'1 1.0 pwrite64(5<{name}>, "{_hex("B")}", 1, 2) = 1\n',
    ]
    changed = [replay.do(call) for call in calls(lines)]
    assert changed == [Path("x")] * 4
    assert (copy / "x").read_text(encoding="utf-8") == 'éB ") = 1en'


def test_calls_outside_the_folder_are_left_out(tmp_path: Path) -> None:
    replay = Replay(tmp_path / "home", tmp_path / "copy", tmp_path)
    assert replay.do(Call(1.0, "mkdir", (_hex("elsewhere"), "0777"), 0)) is None
    assert replay.do(Call(1.0, "mkdir", (_hex("home/within"), "0777"), 0)) == Path("within")


def test_a_call_that_cannot_be_repeated_is_an_error(tmp_path: Path) -> None:
    replay = Replay(tmp_path / "home", tmp_path / "copy", tmp_path)
    with pytest.raises(UnsupportedCallError, match="symlink"):
        replay.do(Call(1.0, "symlink", (_hex("x"), _hex(f"{tmp_path}/home/y")), 0))
    socket = "4<socket:[77]>"
    assert replay.do(Call(1.0, "writev", (socket, _hex("x")), 1)) is None
