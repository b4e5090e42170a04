"""An earlier state of an SDK's repository, checked out beside it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memconform.cli.ci.command import LATEST
from memconform.daemons.discovery import find_runner, working_folder
from memconform.errors import UsageError
from memconform.storage.temporary import temporary_folder

_HINT = (
    "name an existing tag or commit; a CI server fetches none without being told: fetch-depth: 0"
    " of actions/checkout, GIT_DEPTH: 0 of GitLab"
)


@contextmanager
def checked_out(sdk: str, ref: str) -> Iterator[Path]:
    """The sdk.toml of an earlier state; it is gone when the block is left.

    Args:
        sdk: the reference of the SDK as it is now.
        ref: a tag, branch or commit, or `latest` for the tag of the last release.

    Raises:
        UsageError: `no_release` if there is no such state, or none with this sdk.toml; as
            `find_runner` for the SDK itself.
    """
    manifest = find_runner(sdk, working_folder()).manifest_file
    if manifest is None:
        raise _no_release(f"--sdk {sdk} has no sdk.toml, which an earlier state could have too")
    manifest = manifest.resolve()
    root = Path(_git(manifest.parent, "rev-parse", "--show-toplevel"))
    name = _latest(root) if ref == LATEST else ref
    commit = _git(root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
    with temporary_folder("memconform-") as folder:
        copy = folder / "release"
        _git(root, "worktree", "add", "--quiet", "--detach", str(copy), commit)
        try:
            earlier = copy / manifest.relative_to(root.resolve())
            if not earlier.is_file():
                raise _no_release(f"{name} has no {manifest.relative_to(root.resolve())}")
            yield earlier
        finally:
            # A build may have left files, which git would not remove without being told.
            _git(root, "worktree", "remove", "--force", str(copy))


def _latest(root: Path) -> str:
    """The newest tag of an ancestor: that of this commit itself is the release in the making."""
    tags = _git(
        root, "tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-creatordate"
    ).splitlines()
    if not tags:
        raise _no_release("no ancestor of this commit has a tag")
    return tags[0]


def _git(folder: Path, *arguments: str) -> str:
    """What a command of git prints; hooks of the repository do not run."""
    git = shutil.which("git")
    if git is None:
        raise _no_release("--against-ref needs git, which is not on PATH")
    command = [git, "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise _no_release(f"git {arguments[0]}: {ended.stderr.strip() or ended.returncode}")
    return ended.stdout.strip()


def _no_release(message: str) -> UsageError:
    return UsageError(message, code="no_release", hint=_HINT)
