"""`memconform datasets fetch | verify | list`, against a server on this machine."""

import hashlib
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memconform.datasets import download
from memconform.datasets.sources import load_sources
from memconform.errors import UsageError
from tests.conftest import CALL_SECONDS, WAIT_SECONDS, Ended, shell
from tests.integration.file_server import CONTENT, FileServer, Reply, file_server
from tests.program import PROGRAM, ForkServer
from tests.waiting import wait_until

SHA256 = hashlib.sha256(CONTENT).hexdigest()
HALF = len(CONTENT) // 2

_SOURCE = """
[{name}]
about = "a set of questions"
home = "https://example.org/set"
licence = "CC0"
format = "{format}"
folder = "set"
url = "{url}"
"""
_FILE = """
[[{name}.files]]
name = "{file}"
bytes = {size}
sha256 = "{sha256}"
"""


@dataclass
class Place:
    """A server, a data folder, and the program between them."""

    server: FileServer
    folder: Path
    program: ForkServer

    @property
    def path(self) -> Path:
        return self.folder / "data" / "set" / "set.json"

    @property
    def part(self) -> Path:
        return self.path.with_name(".set.json.part")

    @property
    def left(self) -> set[str]:
        """What is in the source's folder."""
        return {path.name for path in self.path.parent.iterdir()}

    def source(self, url: str, sha256: str = SHA256) -> None:
        text = _SOURCE.format(name="set", format="memini", url=url)
        text += _FILE.format(name="set", file="set.json", size=len(CONTENT), sha256=sha256)
        (self.folder / "sources.toml").write_text(text)

    def start(self, *args: str | Path, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*prefix, PROGRAM, "datasets", *args],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        return shell(
            MEMCONFORM_SOURCES="sources.toml", MEMCONFORM_DATA="data", NO_PROXY="127.0.0.1"
        )

    def call(self, *args: str | Path) -> Ended:
        ended = self.program.run(
            ("datasets", *args),
            folder=self.folder,
            environment=self.environment,
            timeout=CALL_SECONDS,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr, self.folder)

    def fetched(self) -> Ended:
        """Fetch, and it went well."""
        ended = self.call("fetch", "set")
        assert ended.code == 0, ended.err
        assert self.path.read_bytes() == CONTENT
        assert self.left == {"set.json"}
        return ended

    def cut(self) -> None:
        """Fetch, and the connection ends within."""
        headers = {"ETag": self.server.etag} if self.server.etag else {}
        self.server.script.append(Reply(cut=HALF, headers=headers))
        ended = self.call("fetch", "set")
        assert (ended.code, "fetch_cut" in ended.err) == (2, True), ended.err
        assert f"{HALF:,} of {len(CONTENT):,} bytes" in ended.err
        assert self.part.read_bytes() == CONTENT[:HALF]
        assert not self.path.exists()


@pytest.fixture
def place(tmp_path: Path, fork_server: ForkServer) -> Iterator[Place]:
    with file_server() as server:
        new_place = Place(server, tmp_path, fork_server)
        new_place.source(server.url)
        yield new_place


def test_a_file_is_fetched_once_and_asked_for_unpacked(place: Place) -> None:
    ended = place.fetched()
    assert ended.out == "data/set/set.json\n"
    assert "set: CC0, see https://example.org/set" in ended.err
    assert "307,200 bytes, sha256 ok" in ended.err
    assert "already present" in place.fetched().err
    [request] = place.server.requests
    assert (request["path"], request["accept-encoding"]) == ("/set.json", "identity")


def test_resumes_a_partial_download(place: Place) -> None:
    place.cut()
    place.fetched()
    assert place.server.ranges == [None, f"bytes={HALF}-"]
    assert place.server.requests[1]["if-range"] == '"one"'


def test_resumes_a_partial_download_with_a_weak_etag(place: Place) -> None:
    place.server.etag = 'W/"weak"'
    place.cut()
    place.fetched()
    assert place.server.ranges == [None, f"bytes={HALF}-"]
    assert "if-range" not in place.server.requests[1]


def test_a_server_that_ignores_ranges_sends_it_whole(place: Place) -> None:
    place.cut()
    place.server.script.append(Reply())
    place.fetched()
    assert len(place.server.requests) == 2


def test_a_file_that_changed_between_two_attempts_is_fetched_from_the_start(place: Place) -> None:
    place.server.script.append(Reply(body=b"\0" * len(CONTENT), cut=HALF, headers={"ETag": '"0"'}))
    assert place.call("fetch", "set").code == 2
    assert place.part.read_bytes() == b"\0" * HALF
    place.fetched()
    assert place.server.requests[1]["if-range"] == '"0"'


def test_a_part_mixed_of_two_files_is_removed_and_fetched_again(place: Place) -> None:
    place.server.etag = None
    place.server.script.append(Reply(body=b"\0" * len(CONTENT), cut=HALF))
    assert place.call("fetch", "set").code == 2
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_differs" in ended.err) == (2, True), ended.err
    assert place.left == set()
    place.fetched()


def test_resumes_a_killed_download(place: Place) -> None:
    place.server.script.append(Reply(cut=HALF, hold=True, headers={"ETag": '"one"'}))
    with place.start("fetch", "set") as process:
        wait_until(lambda: place.part.exists() and place.part.stat().st_size > HALF // 2)
        process.kill()
    kept = place.part.stat().st_size
    assert not place.path.exists()
    place.fetched()
    assert place.server.ranges == [None, f"bytes={kept}-"]


def test_an_interrupted_download_exits_130_and_can_be_resumed(place: Place) -> None:
    place.server.script.append(Reply(cut=HALF, hold=True, headers={"ETag": '"one"'}))
    with place.start("fetch", "set") as process:
        wait_until(lambda: place.part.exists() and place.part.stat().st_size > HALF // 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130
    assert place.part.read_bytes() == CONTENT[:HALF]
    place.fetched()


def test_a_complete_file_is_not_requested_again(place: Place) -> None:
    place.part.parent.mkdir(parents=True)
    place.part.write_bytes(CONTENT)
    place.fetched()
    assert place.server.requests == []


def test_a_part_that_is_too_long_is_fetched_again(place: Place) -> None:
    place.part.parent.mkdir(parents=True)
    place.part.write_bytes(b"\0" * (len(CONTENT) + 1))
    place.fetched()
    assert place.server.ranges == [None]


WRONG = bytes(len(CONTENT))


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(body=WRONG), f"the sha256 is {hashlib.sha256(WRONG).hexdigest()}"),
        (Reply(body=CONTENT + b"!", stated=False), "there are more than 307,200"),
        (Reply(body=CONTENT + b"!"), "there are 307,201 bytes, not 307,200"),
        (Reply(body=CONTENT[:-1]), "there are 307,199 bytes, not 307,200"),
    ],
    ids=["other bytes", "too long", "said to be too long", "said to be too short"],
)
def test_a_file_with_a_wrong_digest_is_removed_and_reported(
    place: Place, reply: Reply, says: str
) -> None:
    place.server.script.append(reply)
    ended = place.call("fetch", "set")
    assert (ended.code, says in ended.err) == (2, True), ended.err
    assert f"pinned: 307,200 bytes, sha256 {SHA256}" in ended.err
    assert place.left == set()
    place.fetched()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(416, b""),
        Reply(206, CONTENT[HALF + 1 :], {"Content-Range": f"bytes {HALF + 1}-307199/307200"}),
        Reply(206, CONTENT[HALF:], {"Content-Range": f"bytes {HALF}-307299/307300"}),
        Reply(206, CONTENT[HALF:]),
    ],
    ids=["no such range", "another begin", "another length", "an unknown range"],
)
def test_a_range_that_was_not_requested_is_not_appended(place: Place, reply: Reply) -> None:
    place.cut()
    place.server.script.append(reply)
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_differs" in ended.err) == (2, True), ended.err
    assert place.left == set()
    place.fetched()


def test_resumes_a_short_response_without_a_length(
    place: Place,
) -> None:
    place.server.script.append(Reply(cut=HALF, stated=False, headers={"ETag": '"one"'}))
    ended = place.call("fetch", "set")
    assert (ended.code, "bytes, then: the response ended" in ended.err) == (2, True)
    assert "run it again to resume the download" in ended.err
    place.fetched()
    assert place.server.ranges == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(404, b""), "404 Not Found"),
        (Reply(503, b""), "503 Service Unavailable"),
        (Reply(204, b""), "204 No Content"),
        (Reply(headers={"Content-Encoding": "gzip"}), "compressed with gzip"),
        (Reply(302, b"", {"Location": "file:///etc/passwd"}), "file://"),
    ],
)
def test_a_refused_download_keeps_the_part_and_suggests_alternatives(
    place: Place, reply: Reply, says: str
) -> None:
    place.cut()
    place.server.script.append(reply)
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_refused" in ended.err) == (2, True), ended.err
    for text in (says, f"from   {place.server.url}set.json", "to     data/set/set.json", SHA256):
        assert text in ended.err
    assert place.part.read_bytes() == CONTENT[:HALF]
    place.fetched()


def test_names_an_unreachable_redirect_host(place: Place) -> None:
    place.server.script.append(Reply(302, b"", {"Location": "http://nowhere.invalid/set.json"}))
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_offline: cannot reach nowhere.invalid" in ended.err) == (2, True)


def test_a_redirect_is_followed_and_a_loop_of_them_ends(place: Place) -> None:
    place.server.script.append(Reply(302, b"", {"Location": "/elsewhere"}))
    place.fetched()
    assert place.server.requests[1]["path"] == "/elsewhere"
    place.path.unlink()
    place.server.script += [Reply(302, b"", {"Location": "/set.json"})] * 50
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_refused" in ended.err) == (2, True), ended.err
    assert "redirects" in ended.err
    assert place.left == set()


@pytest.mark.parametrize("url", ["http://nowhere.invalid/", "http://127.0.0.1:1/"])
def test_without_a_network_the_error_says_what_to_put_where(place: Place, url: str) -> None:
    place.source(url)
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_offline" in ended.err) == (2, True), ended.err
    text = f"  | from   {url}set.json\n  | to     data/set/set.json\n  | sha256 {SHA256}\n"
    assert text in ended.err
    assert place.left == set()
    place.path.write_bytes(CONTENT)
    assert place.call("verify", "set").out == "data/set/set.json: ok\n"


def test_a_full_disk_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    place.part.parent.mkdir(parents=True)
    place.part.symlink_to("/dev/full")
    # A device cannot be truncated.
    monkeypatch.setattr(download, "_truncate", lambda _: None)
    source = load_sources(place.folder / "sources.toml")["set"]
    [file] = download.pinned(source, place.path.parent)
    with download.http_client() as http, pytest.raises(UsageError) as caught:
        download.fetch(file, http, lambda _: None)
    assert caught.value.message == f"cannot write {place.part}: No space left on device"
    assert caught.value.hint.startswith("free 307,200 bytes, or choose another folder")
    assert not place.path.exists()


def test_resumes_a_download_after_a_full_disk(place: Place) -> None:
    # In blocks of 512 bytes in dash, of 1024 in bash: either way less than the file.
    limited = ("sh", "-c", 'ulimit -f 200; exec "$0" "$@"')
    with place.start("fetch", "set", prefix=limited) as process:
        _, err = process.communicate(timeout=CALL_SECONDS)
    assert (process.returncode, "fetch_unwritable" in err) == (2, True), err
    kept = place.part.stat().st_size
    assert kept in (200 * 512, 200 * 1024)
    place.fetched()
    assert place.server.ranges == [None, f"bytes={kept}-"]


def test_names_a_folder_that_cannot_be_created(place: Place) -> None:
    (place.folder / "data").write_text("")
    ended = place.call("fetch", "set", "--to", place.folder / "data" / "below")
    assert (ended.code, "is below" in ended.err) == (2, True), ended.err
    assert place.server.requests == []


def test_another_file_in_its_place_is_not_replaced(place: Place) -> None:
    place.path.parent.mkdir(parents=True)
    place.path.write_text("mine")
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_in_the_way" in ended.err) == (2, True), ended.err
    assert place.path.read_text() == "mine"
    assert place.server.requests == []


def test_two_fetches_of_a_file_do_not_write_into_each_other(place: Place) -> None:
    place.server.script.append(Reply(cut=HALF, hold=True, headers={"ETag": '"one"'}))
    with place.start("fetch", "set") as first:
        wait_until(lambda: place.part.exists() and place.part.stat().st_size > 0)
        second = place.call("fetch", "set")
        assert (second.code, "fetch_locked" in second.err) == (2, True), second.err
        assert first.poll() is None
        first.kill()
    place.fetched()


def test_all_names_are_checked_before_anything_is_fetched(place: Place) -> None:
    ended = place.call("fetch", "set", "sett")
    assert (ended.code, "did you mean 'set'?" in ended.err) == (2, True), ended.err
    assert place.server.requests == []


def test_verify_distinguishes_correct_wrong_and_missing_files(place: Place) -> None:
    ended = place.call("verify")
    assert (ended.code, "no_source_here" in ended.err) == (4, True), ended.err
    ended = place.call("verify", "set")
    assert ended.code == 2
    assert ended.out == f"data/set/set.json: missing; download it from {place.server.url}set.json\n"
    place.fetched()
    for given in ((), ("set",), (place.path,), (place.path.parent,)):
        ended = place.call("verify", *given)
        assert (ended.code, ended.out.endswith("set.json: ok\n")) == (0, True), ended.err
    place.path.write_bytes(WRONG)
    for given in ((), ("set",), (place.path,), (place.path.parent,)):
        ended = place.call("verify", *given)
        assert ended.code == 1, ended.err
        line = f"digest is {hashlib.sha256(WRONG).hexdigest()}, but {SHA256} is pinned\n"
        assert ended.out.endswith(line)


def test_verify_names_a_path_that_no_source_has(place: Place) -> None:
    other = place.folder / "other.json"
    assert "neither a source nor an existing path" in place.call("verify", "other.json").err
    other.write_bytes(CONTENT)
    ended = place.call("verify", "other.json")
    assert (ended.code, "no source has a file of that name" in ended.err) == (2, True)
    place.path.mkdir(parents=True)
    ended = place.call("verify", "set")
    assert (ended.code, "set.json: Is a directory" in ended.err) == (2, True), ended.err


@pytest.mark.capability("datasets")
def test_a_folder_of_files_is_fetched_verified_and_listed_as_one(place: Place) -> None:
    text = _SOURCE.format(name="many", format="wmb", url=place.server.url + "v1/")
    for name in ("datasets/all_questions.json", "documents/a.txt"):
        text += _FILE.format(name="many", file=name, size=len(CONTENT), sha256=SHA256)
    (place.folder / "sources.toml").write_text(text)
    assert "many                   a set of questions (614,400 bytes, CC0): not fetched" in (
        place.call("list").out
    )
    place.server.script += [Reply(), Reply(404, b"")]
    assert place.call("fetch", "many").code == 2
    assert "CC0): 1 of 2 files fetched" in place.call("list").out
    assert place.call("verify").code == 2
    ended = place.call("fetch", "many")
    assert (ended.code, ended.out) == (0, "data/set\n")
    paths = [request["path"] for request in place.server.requests]
    assert paths == ["/v1/datasets/all_questions.json", *["/v1/documents/a.txt"] * 2]
    assert "CC0): data/set\n" in place.call("list").out
    assert place.call("verify", "data/set").code == 0
    (place.folder / "data/set/documents/a.txt").write_text("a")
    assert "fetched, but a file has the wrong size" in place.call("list").out
    assert place.call("verify").code == 1


def test_flags_win_over_variables(place: Place) -> None:
    (place.folder / "mine.toml").write_text((place.folder / "sources.toml").read_text())
    (place.folder / "sources.toml").write_text("")
    assert place.call("fetch", "set").code == 2
    ended = place.call("fetch", "set", "--sources", "mine.toml", "--to", "there")
    assert (ended.code, ended.out) == (0, "there/set/set.json\n")
    assert (place.folder / "there/set/set.json").read_bytes() == CONTENT


def test_a_source_without_a_url_is_fetched_from_the_given_mirror(place: Place) -> None:
    file = place.folder / "sources.toml"
    file.write_text(re.sub(r"url = .*\n", "", file.read_text()))
    ended = place.call("fetch", "set")
    assert (ended.code, "fetch_no_address" in ended.err, SHA256 in ended.err) == (2, True, True)
    assert place.call("verify", "set").out.endswith("missing\n")
    for address in ("ftp://example.org/", "http://example.org/no-folder"):
        ended = place.call("fetch", "set", "--from", address)
        assert (ended.code, "is not the address of a folder" in ended.err) == (2, True)
    assert not place.path.parent.exists()
    ended = place.call("fetch", "set", "--from", place.server.url)
    assert (ended.code, place.path.read_bytes() == CONTENT) == (0, True), ended.err


def test_a_mirror_takes_exactly_one_source(place: Place) -> None:
    file = place.folder / "sources.toml"
    file.write_text(file.read_text() + file.read_text().replace("set", "other"))
    ended = place.call("fetch", "set", "other", "--from", place.server.url)
    assert (ended.code, "takes exactly one NAME" in ended.err) == (2, True)
    assert not place.path.parent.exists()
