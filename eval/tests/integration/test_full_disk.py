"""A full disk: nothing is half stored, nothing acknowledged is lost, and writes work again."""

import base64
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memconform.daemons.discovery import find_runner
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.runner import Launch
from tests.conftest import WAIT_SECONDS
from tests.integration.half_done import Planted
from tests.integration.serving import CHECKOUT

_PAGE = 4096

_SIZE = 8 * 2**20

_STEPS = 24
"""From no free page to more than the largest change needs, so that each write fails once."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The state folder of a daemon, on a file system of its own."""
    folder = tmp_path / "state"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "memconform", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    assert folder.stat().st_dev != tmp_path.stat().st_dev
    yield folder
    unmount = ["umount", "--lazy", str(folder)]
    subprocess.run(unmount, check=True)


class _Disk:
    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def leave(self, pages: int) -> None:
        """Fill the disk, except for some pages."""
        self._filler.unlink(missing_ok=True)
        size = 0
        with self._filler.open("wb", buffering=0) as file:
            while size < 2 * _SIZE:
                try:
                    size += file.write(b"x" * _PAGE)
                except OSError:
                    break
            file.truncate(max(0, size // _PAGE - pages) * _PAGE)

    def free(self) -> None:
        self._filler.unlink()


def _text(word: str) -> bytes:
    return (f"{word} waits. " * 900).encode()


async def _search(client: httpx.AsyncClient, word: str) -> list[str]:
    body = {"query": word, "mode": "bm25", "topK": 100}
    answer = await client.post("/v1/brains/b/search", json=body)
    assert answer.status_code == 200, answer.text
    return sorted({chunk["path"] for chunk in answer.json()["chunks"]})


def _requests(number: int) -> list[tuple[str, str, dict[str, object]]]:
    """A batch, a replacement, a rename and a brain, the sizes of which differ."""
    documents = [
        {
            "path": f"{number}/{name}.md",
            "contentType": "text/plain",
            "title": "T",
            "contentBase64": base64.b64encode(_text(f"word{number}")).decode(),
        }
        for name in ("a", "b")
    ]
    replaced = base64.b64encode(_text(f"fixed{number}")).decode()
    ops = [
        {"type": "write", "path": "fixed.md", "content_base64": replaced},
        {"type": "rename", "path": "moving.md", "to": "moved/moving.md"},
        {"type": "rename", "path": "moved/moving.md", "to": "moving.md"},
        {"type": "rename", "path": "small.md", "to": f"small-{number}.md"},
        {"type": "rename", "path": f"small-{number}.md", "to": "small.md"},
    ]
    return [
        ("POST", "/v1/brains/b/ingest/batch", {"documents": documents}),
        ("POST", "/v1/brains/b/documents/batch-ops", {"ops": ops}),
        ("POST", "/v1/brains", {"brainId": f"new-{number}", "description": "d" * 5000}),
    ]


async def test_a_full_disk_loses_nothing_and_stores_nothing_half(
    sdk: str, tmp_path: Path, small_disk: Path
) -> None:
    runner = find_runner(sdk, CHECKOUT)
    assert isinstance(runner, ManifestRunner)
    runner.use_variables({"JB_EMBED_PROVIDER": "none"})
    await runner.build(lambda _: None)
    launch = Launch(run_id=f"full-{secrets.token_hex(4)}", folder=tmp_path)
    assert launch.state == small_disk
    planted, disk = Planted(small_disk), _Disk(small_disk)
    failures = 0
    async with (
        runner.serve(launch) as daemon,
        httpx.AsyncClient(
            base_url=daemon.base_url, trust_env=False, timeout=WAIT_SECONDS
        ) as client,
    ):
        assert (await client.post("/v1/brains", json={"brainId": "b"})).status_code == 201
        for path in ("fixed.md", "moving.md", "small.md"):
            stored = await client.put(
                "/v1/brains/b/documents", params={"path": path}, content=_text("heron")
            )
            assert stored.status_code == 204, stored.text
        for number in range(_STEPS):
            for method, path, body in _requests(number):
                before = planted.files("b")
                disk.leave(number)
                answer = await client.request(method, path, json=body)
                after = planted.files("b")
                if answer.is_success:
                    continue
                failures += 1
                assert answer.status_code == 500, answer.text
                assert answer.json()["code"] == "internal_error"
                assert after == before
                assert (await _search(client, "heron word0 word12 fixed12")) is not None
            disk.free()
            for index in ("moving.md", "small.md"):
                assert index in await _search(client, "heron")
            found = [path for path in planted.files("b") if path.startswith(f"{number}/")]
            assert await _search(client, f"word{number}") == sorted(found)
            state = (await client.get(f"/v1/brains/new-{number}")).status_code
            assert state in (200, 404)
            if state == 200:
                assert (small_disk / "descriptions" / f"new-{number}.txt").stat().st_size == 5000
            # Space is back: what failed succeeds now, without a restart.
            for method, path, body in _requests(number)[:2]:
                answer = await client.request(method, path, json=body)
                assert answer.is_success, answer.text
            gone = {"ops": [{"type": "delete", "path": f"{number}/{name}.md"} for name in "ab"]}
            answer = await client.post("/v1/brains/b/documents/batch-ops", json=gone)
            assert answer.is_success, answer.text
            assert await _search(client, f"fixed{number}") == ["fixed.md"]
        assert failures > _STEPS // 2
        assert not list((small_disk / "staging").glob("*/*/journal"))
        counts = (await client.get("/v1/brains/b")).json()
        assert (counts["documents"], counts["pending"]) == (3, 0)
