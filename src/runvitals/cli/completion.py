"""`runvitals completion SHELL`: the script with which a shell completes commands and options."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, Final

from runvitals.cli import parser as whole_parser
from runvitals.journal.paths import data_dir

_SHELLS = ("bash", "zsh", "fish")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals completion`."""
    parser.description = (
        'bash: add eval "$(runvitals completion bash)" to ~/.bashrc. zsh: eval "$(runvitals completion zsh)" '
        "in ~/.zshrc, after compinit; or write it to a file _runvitals in a folder of $fpath. fish: write it "
        "to ~/.config/fish/completions/runvitals.fish."
    )
    parser.add_argument("shell", choices=_SHELLS)


def run(arguments: argparse.Namespace) -> int:
    """Print the script; return 0."""
    import shtab

    parser = whole_parser()
    folders, files = dict.fromkeys(("DIR", "FOLDER"), shtab.DIRECTORY), dict.fromkeys(_FILES, shtab.FILE)
    _complete(parser, {**folders, **files, "RUN": _RUNS})
    function = _FUNCTIONS[arguments.shell].replace("FOLDER", shlex.quote(data_dir()))
    script = shtab.complete(parser, arguments.shell, preamble=function)
    print(script.replace(_EVALUATED_BY_ZSH, _READ_BY_ZSH))
    return 0


_EVALUATED_BY_ZSH: Final = "$zsh_eval_context[-1] == eval"
_READ_BY_ZSH: Final = '"$funcstack[1]" != _runvitals'
"""When the script of zsh is not called as a function of $fpath: also by `source`, which shtab forgets."""
_FILES: Final = ("FILE", "PATH", "SOURCE")
_RUNS: Final = {"bash": "_runvitals_runs", "zsh": "_runvitals_runs", "fish": "(_runvitals_runs)"}
_FUNCTIONS: Final = {
    "bash": """
_runvitals_runs() {
  local folder=${RUNVITALS_DIR:-FOLDER} i path
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == --dir ]] && folder=${COMP_WORDS[i + 1]}
  done
  for path in "$folder/runs/$1"*/; do
    path=${path%/}
    [[ ${path##*/} =~ ^[A-Za-z0-9_.-]+$ ]] && printf '%s\\n' "${path##*/}"
  done
}
""",
    "zsh": """
_runvitals_runs() {
  local folder=${RUNVITALS_DIR:-FOLDER} i=${words[(i)--dir]}
  (( i < CURRENT - 1 )) && folder=${words[i+1]}
  local -a runs=($folder/runs/*(N/om:t))
  compadd -V runs -a runs
}
""",
    "fish": """
function _runvitals_runs
  set -l folder FOLDER
  set -q RUNVITALS_DIR; and set folder $RUNVITALS_DIR
  set -l words (commandline -opc)
  set -l at (contains -i -- --dir $words); and set folder $words[(math $at + 1)]
  command ls -1t $folder/runs 2>/dev/null
end
""",
}
"""Print the ids of the runs in the data folder, for each shell, without starting Python."""


def _complete(parser: argparse.ArgumentParser, by_metavar: dict[str, Any]) -> None:
    """Have arguments that name files, folders or runs completed as such, in all subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete(command, by_metavar)
        elif isinstance(action.metavar, str):
            names = action.metavar.replace("|", " ").replace(",", " ").split()
            known = [name for name in ("RUN", *names) if name in names and name in by_metavar]
            if known:
                action.complete = by_metavar[known[0]]  # type: ignore[attr-defined]
