"""What `memconform init` does."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from memconform.cli.init.command import InitOptions
from memconform.daemons.ecosystems import DETECTORS
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_draft import (
    KNOWN_FAILURES,
    KNOWN_FILE,
    draft_manifest,
    draft_workflow,
)
from memconform.daemons.observed_routes import draft_dialect, observe
from memconform.daemons.repository import Daemon, find_daemon
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.storage.sink import replacing

_WORKFLOWS = Path(".github") / "workflows"


def init(options: InitOptions) -> ExitCode:
    """Write the files that describe a repository, or the dialect of a daemon.

    Raises:
        UsageError: `init_exists` if one of the files exists; `nothing_recognized` if no toolchain
            with a program is; `bad_url`.
        DaemonError: `daemon_unreachable` for `--url`.
        ResultsError: `results_unwritable` if a file cannot be written.
    """
    if options.url is not None:
        return _describe_daemon(options.folder, options.url)
    manifest = options.folder / "sdk.toml"
    # Before the repository is read: its answer would be about a file that is not written.
    _require_absent([manifest])
    daemon = find_daemon(options.folder, DETECTORS)
    if daemon is None:
        raise _nothing_recognized(options.folder)
    root = _repository_root(options.folder)
    below = options.folder.resolve().relative_to(root).as_posix()
    sdk = "./sdk.toml" if below == "." else f"./{below}/sdk.toml"
    workflow = "memconform.yml" if below == "." else f"memconform-{daemon.name}.yml"
    # The path as the user wrote the folder, as long as it is the repository's own.
    top = options.folder if below == "." else root
    _write(
        {
            manifest: draft_manifest(daemon),
            options.folder / KNOWN_FILE: KNOWN_FAILURES,
            top / _WORKFLOWS / workflow: draft_workflow(sdk),
        }
    )
    load_manifest(manifest)
    _show(daemon, manifest)
    return ExitCode.OK


def _describe_daemon(folder: Path, url: str) -> ExitCode:
    target = folder / "dialect.toml"
    _require_absent([target])
    observation = observe(url)
    _write({target: draft_dialect(observation)})
    succeeded = [path for path, status in observation.answers.items() if status < 400]
    echo(f"answered  GET {', '.join(succeeded) or 'nothing'}")
    if observation.document:
        echo(f"documented {len(observation.documented)} operations in {observation.document}")
    _show_next(f"url:{observation.address},dialect={target}")
    return ExitCode.OK


def _require_absent(targets: list[Path]) -> None:
    """Raise UsageError `init_exists` for a file that would be replaced."""
    for target in targets:
        if target.exists() or target.is_symlink():
            raise UsageError(
                f"{target} exists already, and init replaces nothing",
                code="init_exists",
                hint=f"memconform doctor --sdk {target}"
                if target.name == "sdk.toml"
                else f"move {target.name} away, or keep it and go on with memconform doctor",
            )


def _write(contents: Mapping[Path, str]) -> None:
    """Write all files, or none if one of them exists."""
    _require_absent(list(contents))
    for target, text in contents.items():
        with replacing(target) as sink:
            sink.write_text(text)
        echo(f"wrote     {target}")


def _repository_root(folder: Path) -> Path:
    """The folder of the git repository, in which workflows lie; the folder itself without one."""
    here = folder.resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), here)


def _show(daemon: Daemon, manifest: Path) -> None:
    echo(f"saw       {daemon.project.ecosystem}: {daemon.sources}")
    if daemon.others:
        echo(f"not taken {', '.join(daemon.others)}")
    for number, line in enumerate(manifest.read_text(encoding="utf-8").splitlines(), 1):
        key, marker, check = line.partition("     # check: ")
        if marker:
            echo(f"check     {manifest}:{number} {key.partition(' ')[0]}: {check}")
    _show_next(str(manifest))


def _show_next(reference: str) -> None:
    echo(Lines(f"next      memconform doctor --sdk {shlex.quote(reference)}"))


def _nothing_recognized(folder: Path) -> UsageError:
    return UsageError(
        f"{folder} has no program of Go, Rust, .NET, Java, Node or Python that init recognizes",
        code="nothing_recognized",
        hint="give the folder with go.mod, Cargo.toml, *.csproj, pom.xml, build.gradle,"
        " package.json or pyproject.toml, or write an sdk.toml like these lines",
        excerpt='name = "mine"\nlanguage = "…"\n[serve]\nargv = ["./memory", "serve", "--addr",'
        ' "{addr}", "--root", "{state_dir}"]\n[capabilities]\nprofiles = ["core"]\n'
        'modes = ["auto", "bm25"]',
    )
