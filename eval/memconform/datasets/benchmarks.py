"""The formats of retrieval benchmarks by name, and which one a file looks like."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from memconform.datasets.files import PieceReader, elements, unfit
from memconform.datasets.haystacks import Haystack
from memconform.datasets.locomo import read_locomo
from memconform.datasets.longmemeval import read_longmemeval
from memconform.datasets.memini import read_memini
from memconform.datasets.wmb import QUESTIONS, read_wmb
from memconform.errors import UsageError, nearest

ENTRY_POINTS = "memconform.benchmarks"
"""The group in which another package names a `Format` of its own."""

_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    about: str
    read: Callable[..., Iterator[Haystack]]
    """Of a PieceReader, or of a folder; with one keyword an option that was given."""
    fits: Callable[[Path], bool]
    """Whether a path looks like it; raises nothing but UsageError."""
    options: Mapping[str, tuple[str, ...]]
    """What each of its options may be; the first is the default."""
    is_folder: bool = False


_LEVELS = ("turn", "session")


def _first_keys(path: Path) -> frozenset[str]:
    """The keys of a file's first element; none where it is no array of objects."""
    if path.is_dir():
        return frozenset()
    with PieceReader(path) as source:
        try:
            first = next(elements(source), None)
        except UsageError:
            return frozenset()
    return frozenset(first) if isinstance(first, dict) else frozenset()


def _has_items(path: Path) -> bool:
    if path.is_dir():
        return False
    with PieceReader(path) as source:
        head = source.read(_HEAD).lstrip()
    return head.startswith(b"{") and (b'"items"' in head or b'"questions"' in head)


_OURS = (
    Format(
        "locomo",
        "LoCoMo, locomo10.json: ten conversations; an item is a turn or a session",
        read_locomo,
        lambda path: {"qa", "conversation"} <= _first_keys(path),
        {"level": _LEVELS},
    ),
    Format(
        "longmemeval",
        "LongMemEval, oracle, S or M: a haystack of chat sessions a question",
        read_longmemeval,
        lambda path: {"question_id", "haystack_sessions"} <= _first_keys(path),
        {"level": ("session", "turn"), "session_doc": ("full", "user-only", "dated")},
    ),
    Format(
        "wmb",
        "WMB-100K, the folder that holds datasets/ and documents/",
        read_wmb,
        lambda path: (path / QUESTIONS).is_file(),
        {"part": ("B", "A")},
        is_folder=True,
    ),
    Format(
        "memini",
        "memini's {name, items, questions}",
        read_memini,
        _has_items,
        {},
    ),
)


@cache
def formats() -> dict[str, Format]:
    """Ours, and those that other packages have named, which go before ours of that name."""
    found = {each.name: each for each in _OURS}
    for point in entry_points(group=ENTRY_POINTS):
        loaded = point.load()
        if not isinstance(loaded, Format):
            raise UsageError(
                f"the entry point {point.name!r} of {ENTRY_POINTS} is no Format",
                code="bad_entry_point",
                hint=f"it is {point.value}",
            )
        found[loaded.name] = loaded
    return found


@dataclass(slots=True)
class Benchmark:
    """A benchmark's file or folder, in a format, with the format's options settled."""

    path: Path
    format: Format
    options: Mapping[str, str]
    sha256: str = ""
    """Of a file's bytes, unpacked, once it was read to its end."""

    def __iter__(self) -> Iterator[Haystack]:
        """Its haystacks, read anew.

        Raises:
            UsageError: naming what is wrong with it: an empty haystack, an id that stands twice, a
                text that no daemon can be sent, or whatever its format does not allow.
        """
        known: set[str] = set()
        if self.format.is_folder:
            for haystack in self.format.read(self.path, **self.options):
                self._check(haystack, known)
                yield haystack
            return
        with PieceReader(self.path) as source:
            for haystack in self.format.read(source, **self.options):
                self._check(haystack, known)
                yield haystack
            self.sha256 = source.sha256

    def _check(self, haystack: Haystack, known: set[str]) -> None:
        if not haystack.items:
            raise unfit(self.path, f"{haystack.id}: the haystack is empty")
        ids = Counter(item.id for item in haystack.items)
        queries = [f"{haystack.id}: {query.id}" for query in haystack.queries]
        twice = [f"{haystack.id}: {name}" for name, count in ids.items() if count > 1]
        twice += [name for name, count in Counter(queries).items() if count > 1 or name in known]
        if twice:
            raise unfit(self.path, f"the id {twice[0]} stands there twice")
        known.update(queries)
        texts = [(item.id, item.text) for item in haystack.items]
        texts += [(query.id, query.question) for query in haystack.queries]
        for name, text in texts:
            try:
                # Encoding takes a tenth of the time that looking for one would.
                text.encode()
            except UnicodeEncodeError as error:
                why = f"{haystack.id}: {name} holds half of a surrogate pair"
                raise unfit(self.path, why) from error


def open_benchmark(path: Path, name: str | None, given: Mapping[str, str | None]) -> Benchmark:
    """The benchmark at `path`, in the format `name`, or in the one that it looks like.

    Raises:
        UsageError: where there is none, it is in another format, or an option is not the format's.
    """
    if not path.exists():
        raise UsageError(f"{path} is not there", code="dataset_missing", hint="check the path")
    known = formats()
    if name is not None and name not in known:
        raise UsageError(f"no format {name!r}", code="unknown_format", hint=nearest(name, known))
    looks = next((each for each in known.values() if each.fits(path)), None)
    chosen = known[name] if name is not None else looks
    if chosen is None:
        raise UsageError(
            f"{path} looks like no format that is known ({', '.join(known)})",
            code="unknown_format",
            hint="name it by --format, and read what is wrong with it",
        )
    if looks is not None and looks is not chosen:
        raise UsageError(
            f"{path} looks like {looks.name}, not {chosen.name}",
            code="wrong_format",
            hint=f"--format {looks.name}",
        )
    return Benchmark(path, chosen, _settled(chosen, given))


def _settled(chosen: Format, given: Mapping[str, str | None]) -> dict[str, str]:
    settled = {name: allowed[0] for name, allowed in chosen.options.items()}
    for name, value in given.items():
        if value is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        if name not in settled:
            raise UsageError(f"{chosen.name} has no {flag}", code="bad_option", hint=chosen.about)
        if value not in chosen.options[name]:
            raise UsageError(
                f"{chosen.name} has no {flag} {value}",
                code="bad_option",
                hint=f"one of {', '.join(chosen.options[name])}",
            )
        settled[name] = value
    return settled
