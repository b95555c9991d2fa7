"""`runvitals --help` loads no subcommand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runvitals.cli import main, parser

_LOADED = """
import sys
from runvitals.cli import parser
parser(["--help"]).format_help()
print(*(name for name in sys.modules if name.startswith(("runvitals.cli.", "runvitals.sdk"))))
"""


def test_help_is_that_of_all_commands_and_loads_none() -> None:
    assert parser(["--help"]).format_help() == parser().format_help()
    loaded = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["runvitals.cli.command_list"]


@pytest.mark.parametrize("words", [[], ["sho"], ["--unknown", "show"]])
def test_invalid_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: runvitals" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["sample", "--format", "xml"], "usage: runvitals sample"),
        (["run", "--foo", "--", "true"], "usage: runvitals run"),
        (["artifact", "ls", "--foo"], "usage: runvitals artifact ls"),
        (["leet", "latest", "--foo"], "usage: runvitals leet"),
    ],
)
def test_an_unknown_option_is_reported_with_the_usage_of_its_command(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(usage)
    assert "unrecognized arguments: --fo" in error
