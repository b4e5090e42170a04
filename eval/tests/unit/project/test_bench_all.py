"""The table at the end of `make bench`, and when it fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

_SCRIPTS = CHECKOUT / "scripts"
_REPORT = """
import sys
sys.path.insert(0, {scripts!r})
from reporting import missed, report
report("a figure", {value}, "ms", limit=1.0)
sys.exit(1 if missed() else 0)
"""


@pytest.mark.parametrize(
    ("script", "code", "end"),
    [
        (_REPORT.format(scripts=str(_SCRIPTS), value=0.5), 0, "1 figure, 0 beyond the limit"),
        (_REPORT.format(scripts=str(_SCRIPTS), value=1.5), 1, "1 figure, 1 beyond the limit"),
        ("raise SystemExit(3)", 1, "0 figures, 0 beyond the limit, 1 script failed"),
        ("", 1, "0 figures"),
    ],
)
def test_the_table_fails_with_its_figures(tmp_path: Path, script: str, code: int, end: str) -> None:
    path = tmp_path / "bench_one.py"
    path.write_text(script)
    ended = subprocess.run(
        [sys.executable, _SCRIPTS / "bench_all.py", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, end in ended.stdout) == (code, True), ended.stdout + ended.stderr
