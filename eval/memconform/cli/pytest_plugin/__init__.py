"""The pytest plug-in: flags by which each conformance case of an SDK becomes a test.

pytest imports this module wherever memconform is installed, so it imports nothing of memconform
until a flag asks for it.
"""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags; they are those of `memconform conform`."""
    group = parser.getgroup("memconform", "conformance of memory daemons")
    group.addoption(
        "--memconform-sdk",
        action="append",
        default=[],
        metavar="SDK",
        help="Test this SDK against the contract: each case variant is a test item,"
        " memconform::SDK::CASE. SDK is what `memconform conform --sdk` takes. May be given several"
        " times.",
    )
    group.addoption(
        "--memconform-profile",
        action="append",
        default=[],
        metavar="PROFILE",
        help="Only cases of this profile. May be given several times.",
    )
    group.addoption(
        "--memconform-case",
        action="append",
        default=[],
        metavar="GLOB",
        help="Only cases whose id matches GLOB. May be given several times.",
    )
    group.addoption(
        "--memconform-known",
        action="append",
        default=[],
        metavar="FILE",
        help="List of known failures, in addition to that of each sdk.toml. May be given several"
        " times.",
    )
    group.addoption(
        "--memconform-output",
        default="results",
        metavar="DIR",
        help="Folder to write the results of the runs to.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register what makes and runs the tests, if a flag names an SDK."""
    if not config.getoption("memconform_sdk"):
        return
    if hasattr(config, "workerinput") or config.getoption("dist", "no") != "no":
        raise pytest.UsageError(
            "--memconform-sdk cannot be combined with pytest-xdist: each worker would run the"
            " cases of all.\n  try: add -n0; up to eight daemons run at once without workers"
        )
    from memconform.cli.pytest_plugin.hooks import ConformanceHooks  # noqa: PLC0415 - see above

    config.pluginmanager.register(ConformanceHooks(config), "memconform-cases")
