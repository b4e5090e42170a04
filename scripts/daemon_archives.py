"""Packs the reference daemons for machines without their toolchains: daemon_archives.py [SDK…].

`memconform-daemon-go-VERSION-OS-ARCH.tar.gz` unpacks to `sdks/go`, where `memconform run --sdk go`
finds it from the same folder. The TypeScript daemon needs node. The Python daemon needs the Python
version that packed it, because some of its packages are compiled for that version. The same build
gives the same bytes.
"""

import argparse
import asyncio
import gzip
import json
import platform
import re
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from memconform import __version__
from memconform.daemons.build import build_key, ensure_built
from memconform.daemons.manifest import Manifest, load_manifest

_ROOT = Path(__file__).parents[1]
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_SERVED = {
    "go": ["./memory"],
    "ts": ["node", "./dist/main.js"],
    "py": [_PYTHON, "-m", "memoryd"],
}
"""The command that starts each daemon in its folder."""
_EXCLUDED = re.compile(
    r"node_modules/(typescript|@types|\.bin)/"  # what only the build needs
    r"|(^|/)__pycache__/"
    # Written by pip for uninstalling, with paths of this machine.
    r"|\.dist-info/(RECORD|INSTALLER|REQUESTED|direct_url\.json)$"
)
_BUILD_TABLE = re.compile(r"^\[build\]\n.*?(?=^\[)", re.MULTILINE | re.DOTALL)


def packed_manifest(text: str, sdk: str) -> str:
    """The `sdk.toml` of a daemon that is already built, which starts in its own folder."""
    text = _BUILD_TABLE.sub("", text)
    [old_start] = re.findall(r"^argv = \[(.*?), \"serve\"", text, re.MULTILINE)
    text = text.replace(old_start, json.dumps(_SERVED[sdk])[1:-1])
    text = re.sub(r"^requires = .*\n", "", text, flags=re.MULTILINE)
    interpreter, *script = _SERVED[sdk]
    return f"requires = {json.dumps([interpreter])}\n{text}" if script else text


def _program(sdk: str, build: Path) -> Iterator[tuple[str, Path]]:
    """The files of a build by their names in the archive."""
    if sdk == "py":
        # A virtual environment contains its own path; the packages in it do not.
        [build] = build.glob("lib/python*/site-packages")
    patterns = ["dist/**/*", "node_modules/**/*", "package.json"] if sdk == "ts" else ["**/*"]
    for path in (path for pattern in patterns for path in build.glob(pattern)):
        name = path.relative_to(build).as_posix()
        if path.is_file() and not name.startswith(".") and not _EXCLUDED.search(name):
            yield name, path


def pack(sdk: str, build: Path, output: Path) -> Path:
    """Write the archive of a daemon that was built in the folder `build`."""
    source = _ROOT / "sdks" / sdk / "sdk.toml"
    text = packed_manifest(source.read_text(encoding="utf-8"), sdk)
    files = {name: (path.read_bytes(), _mode(path)) for name, path in _program(sdk, build)}
    files["LICENSE"] = ((_ROOT / "LICENSE").read_bytes(), 0o644)
    files["sdk.toml"] = (text.encode(), 0o644)
    system = f"{sys.platform}-{platform.machine()}"
    archive = output / f"memconform-daemon-{sdk}-{__version__}-{system}.tar.gz"
    with (
        archive.open("wb") as raw,
        # gzip would record the file's name and time.
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"sdks/{sdk}/{name}")
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, BytesIO(content))
    return archive


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


async def _build(manifest: Manifest, folder: Path) -> Path:
    key = build_key(manifest, folder)
    return await ensure_built(manifest, folder, key, lambda line: print(line, file=sys.stderr))


def main() -> None:
    """Build what is not yet built, and pack it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sdk", nargs="*", metavar="SDK", help="go, ts, py; all by default")
    output = parser.add_argument("--output", type=Path, default=Path("archives"), metavar="DIR")
    output.help = "folder to write to; archives by default"
    options = parser.parse_args()
    if unknown := set(options.sdk) - _SERVED.keys():
        parser.error(f"unknown SDK: {', '.join(sorted(unknown))}")
    options.output.mkdir(parents=True, exist_ok=True)
    for sdk in options.sdk or _SERVED:
        folder = _ROOT / "sdks" / sdk
        build = asyncio.run(_build(load_manifest(folder / "sdk.toml"), folder))
        print(pack(sdk, build, options.output))


if __name__ == "__main__":
    main()
