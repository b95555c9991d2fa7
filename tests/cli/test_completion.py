"""Shells complete commands and options; every list can be JSON; the manual page has all commands."""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import COMMANDS, main, parser

LISTS = {
    "list",
    "ls",
    "history",
    "requests",
    "stats",
    "audit",
    "members",
    "runs",
    "files",
    "findings",
    "metrics",
}
_COMPLETE = """
source /dev/stdin
COMP_WORDS=({words}) COMP_CWORD={last}
_shtab_runvitals "${{COMP_WORDS[@]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["runvitals", "find"], "findings"),
        (["runvitals", "findings", "--js"], "--json"),
        (["runvitals", "store", "com"], "compact"),
        (["runvitals", "export", "--format", "js"], "jsonl"),
        (["runvitals", "leet", "inspect", "b"], "brave-otter-1"),
    ],
)
def test_bash_completes(
    words: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    (tmp_path / "runs" / "brave-otter-1").mkdir(parents=True)
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    quoted = " ".join(f"'{word}'" for word in words)
    command = _COMPLETE.format(words=quoted, last=len(words) - 1)
    done = subprocess.run(["bash", "-c", command], input=script, capture_output=True, text=True, check=False)
    assert expected in done.stdout.split(), done.stderr


_RUN_IDS = {
    "bash": "COMP_WORDS=(runvitals show --dir {folder} ab) COMP_CWORD=4; _runvitals_runs ab",
    "zsh": "words=(show --dir {folder} ab) CURRENT=4; compadd() {{ print -l $runs }}; _runvitals_runs",
    "fish": "function commandline; printf '%s\\n' show --dir {folder} ab; end; _runvitals_runs",
}


@pytest.mark.parametrize("shell", sorted(_RUN_IDS))
def test_shells_list_the_runs_of_a_folder(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("abc1", "abd-2", "$(touch x)"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    begin = script.index("function _runvitals_runs" if shell == "fish" else "_runvitals_runs()")
    function = script[begin : script.index("\nend\n" if shell == "fish" else "\n}\n", begin) + 5]
    command = f"{function}\n{_RUN_IDS[shell].format(folder=tmp_path)}"
    done = subprocess.run([shell, "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert {"abc1", "abd-2"} <= set(done.stdout.split()), done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("reading", ["source ./script", 'eval "$(cat script)"', "source <(cat script)"])
def test_zsh_reads_the_script(reading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    assert main(["completion", "zsh"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    command = f"autoload -U compinit; compinit -u -D; {reading}; print $_comps[runvitals]"
    done = subprocess.run(["zsh", "-fc", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.stdout, done.stderr) == ("_shtab_runvitals\n", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_have_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)


def test_every_list_can_be_json() -> None:
    without = [command.prog for command in _commands(parser()) if not _has_json(command)]
    assert [name for name in without if name.split()[-1] in LISTS] == []


def _commands(group: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [action for action in group._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield group
    for action in below:
        for command in action.choices.values():
            yield from _commands(command)


def _has_json(command: argparse.ArgumentParser) -> bool:
    return any("--json" in action.option_strings for action in command._actions)


def test_the_manual_page_has_all_commands(tmp_path: Path) -> None:
    hatch_build = importlib.import_module("hatch_build")  # untyped where hatchling is not installed
    manual = tmp_path / "runvitals.1"
    hatch_build.write_manual(Path(hatch_build.__file__).parent, manual)
    text = manual.read_text("utf-8").replace("\\-", "-")
    assert all(f"runvitals {name}" in text for name in COMMANDS)
    if shutil.which("man"):
        shown = subprocess.run(["man", "-l", str(manual)], capture_output=True, text=True, check=True)
        assert "The vital signs of every training run." in shown.stdout
