"""What a repository shows of the daemon in it: its language, how it is built, how it is started.

Only files are read; nothing of the repository is executed. What no file shows is not guessed in
silence: the most common form is taken, and the line of the sdk.toml says what to check.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from memconform.daemons.project_files import ProjectFiles

_LONGEST_NAME = 32
_RESERVED = ("all",)
"""What `--sdk` means something else by."""
_SOURCES = (".go", ".ts", ".js", ".mjs", ".cjs", ".py", ".rs", ".java", ".kt", ".cs")
_MOST_SOURCES = 400
"""Source files that are searched for names of flags."""
_ADDRESS = ("addr", "address", "listen", "bind")
_STATE = ("root", "state-dir", "data-dir", "state", "data")
_SERVE = re.compile(r"""["'`]serve["'`]|\bServe\s*[{(,]""")


@dataclass(frozen=True, slots=True)
class Line:
    """A value of the sdk.toml, and what to check of it; empty if a file shows it."""

    value: tuple[str, ...]
    check: str = ""


@dataclass(frozen=True, slots=True)
class BuildSteps:
    """How a program is built."""

    command: tuple[str, ...]
    inputs: tuple[str, ...]
    """Globs, each of which matches a file."""
    check: str = ""
    """What to check of the command."""
    inputs_check: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One program that a repository builds."""

    name: str
    source: str
    """The file or key that shows it."""
    start: tuple[str, ...]
    """The command, without arguments."""
    build: BuildSteps | None = None
    env: tuple[tuple[str, str], ...] = ()
    check: str = ""
    """What to check of `start`."""


@dataclass(frozen=True, slots=True)
class Project:
    """The part of a repository that one toolchain builds."""

    ecosystem: str
    """As people call it, such as `.NET`."""
    language: str
    evidence: str
    """The file by which it was recognized."""
    name: str
    requires: tuple[str, ...]
    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class Daemon:
    """The program that was chosen, with the arguments that its sources show."""

    project: Project
    program: Program
    argv: Line
    others: tuple[str, ...] = ()
    """Programs and projects that were not chosen."""

    @property
    def name(self) -> str:
        """The name of the SDK."""
        return self.project.name

    @property
    def sources(self) -> str:
        """What showed it: the file of the toolchain, and that of the program."""
        return " and ".join(dict.fromkeys((self.project.evidence, self.program.source)))


Detector = Callable[[ProjectFiles], Project | None]


def sdk_name(*candidates: str) -> str:
    """The first candidate that can be a name of an SDK, with other characters replaced by `-`."""
    for candidate in candidates:
        name = re.sub(r"[^a-z0-9_-]+", "-", candidate.lower())
        name = re.sub(r"^[^a-z]+", "", name)[:_LONGEST_NAME].rstrip("-_")
        if name and name not in _RESERVED:
            return name
    return "sdk"


def find_daemon(folder: Path, detectors: Iterable[Detector]) -> Daemon | None:
    """Find the daemon of a repository; None if no toolchain with a program is recognized.

    Of several programs the one is chosen whose name says most that it serves; of several
    toolchains the first in the order of `detectors`.
    """
    files = ProjectFiles(folder)
    seen = [project for detector in detectors if (project := detector(files)) is not None]
    runnable = [project for project in seen if project.programs]
    if not runnable:
        return None
    project = runnable[0]
    program = min(project.programs, key=lambda each: _rank(each, project, folder))
    others = [each.source for each in project.programs if each is not program]
    others += [f"{each.evidence} ({each.ecosystem})" for each in seen if each is not project]
    named = replace(project, name=sdk_name(project.name, program.name, folder.resolve().name))
    return Daemon(named, program, _arguments(files, program), tuple(others))


def _rank(program: Program, project: Project, folder: Path) -> tuple[int, str]:
    """How well a name fits a daemon of memory; the least is the best."""
    name = program.name.lower()
    own = (project.name.lower(), folder.resolve().name.lower())
    for rank, fits in enumerate(
        (
            name in ("memory", "memoryd"),
            "memory" in name and ("serve" in name or name.endswith("d")),
            "serve" in name or "daemon" in name,
            "memory" in name,
            name in own,
            name.endswith("d"),
        )
    ):
        if fits:
            return rank, name
    return 9, name


def _arguments(files: ProjectFiles, program: Program) -> Line:
    """The command to serve, with the flags that the sources name."""
    sources = [files.text(path) for path in files.named(*_SOURCES)[:_MOST_SOURCES]]
    text = "\n".join(sources)
    flags = _flags(text)
    address = next((flag for flag in _ADDRESS if flag in flags), "")
    state = next((flag for flag in _STATE if flag in flags), "")
    argv = list(program.start)
    unseen = [program.check] if program.check else []
    if _SERVE.search(text) or not flags:
        argv.append("serve")
        if not _SERVE.search(text):
            unseen.append("the command serve")
    if address:
        argv += [f"--{address}", "{addr}"]
    elif "port" in flags:
        argv += ["--host", "{host}"] if "host" in flags else []
        argv += ["--port", "{port}"]
    else:
        argv += ["--addr", "{addr}"]
        unseen.append("--addr {addr}; or {host} and {port}")
    if state:
        argv += [f"--{state}", "{state_dir}"]
    else:
        argv += ["--root", "{state_dir}"]
        unseen.append("--root {state_dir}, unless JB_HOME is read")
    check = f"not seen in the sources: {', '.join(unseen)}" if unseen else ""
    return Line(tuple(argv), check)


def _flags(text: str) -> set[str]:
    """Names of flags that sources declare: `"--addr"`, or `flag.String("addr"` of Go."""
    names = "|".join((*_ADDRESS, *_STATE, "host", "port"))
    written = re.findall(rf"""["'`\s]--({names})["'`\s=,]""", text)
    declared = re.findall(
        rf"""\b(?:String|Int|Uint|Duration|TextVar|Func)(?:Var)?P?\([^"\n]*"({names})\"""", text
    )
    # An option object of Node's util.parseArgs, and a field of Rust's clap, have no dashes.
    options = re.findall(rf"""^\s*["']?({names})["']?:\s*\{{\s*type:""", text, re.MULTILINE)
    return {*written, *declared, *options}
