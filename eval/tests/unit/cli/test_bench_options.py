"""What `wmb run` shares with `bench`: defaults, and what is imported."""

import subprocess
import sys
from dataclasses import MISSING, fields

from memconform.cli.bench.command import command
from memconform.cli.bench.options import BenchOptions


def test_options_have_the_defaults_of_the_flags() -> None:
    context = command.make_context("bench", [])
    for each in fields(BenchOptions):
        if each.default is not MISSING:
            assert context.params[each.name] == each.default, each.name


def test_asking_a_daemon_does_not_import_numpy() -> None:
    code = "import sys, memconform.cli.wmb.execution as run; print('numpy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
