"""`runvitals doctor`: check what works on this machine, and how to fix what does not."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runvitals.base.terminal_text import fitting, inert
from runvitals.cli.data_folder import add_dir, directory
from runvitals.monitoring.settings.settings import resolve

if TYPE_CHECKING:
    from runvitals.tools.doctor import Check, Examination

_WIDTH = 110
_NAME_WIDTH = 18


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals doctor`."""
    parser.description = (
        "Checks all sources, the system, the data folder, the destinations and the terminal, "
        "and "
        "records a short run with a real monitor. The exit code is 1 if a check fails."
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        help="also write a support bundle, with secrets redacted, to FILE (.tar.gz or .zip)",
    )
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print all findings, and write a bundle; return 1 if a check fails."""
    from runvitals.tools.doctor import bundle, examine

    if arguments.bundle:
        bundle.check_name(arguments.bundle)
    values = resolve({}, os.environ, os.getcwd())
    folder = directory(arguments)
    if arguments.json:
        report = examine(values, folder)
        print(json.dumps(as_json(report), indent=1))
    else:
        report = examine(values, folder, on_finding=_Printer())
        counts = ", ".join(f"{count} {state}" for state, count in report.counts().items())
        print(f"\n{counts}")
    if arguments.bundle:
        names = bundle.write(arguments.bundle, report, values, folder, os.environ)
        print(
            _fit_encoding(f"{arguments.bundle}: {', '.join(names)}; review it before you send it"),
            file=sys.stderr,
        )
    return 1 if report.failed else 0


def as_json(report: Examination) -> dict[str, Any]:
    """Return the report as `--json` prints it."""
    return {"failed": report.failed, "findings": [asdict(finding) for finding in report.findings]}


class _Printer:
    """Prints findings as they arrive, with a heading for each section."""

    def __init__(self) -> None:
        self._section = ""

    def __call__(self, finding: Check) -> None:
        if finding.section != self._section:
            print(f"{chr(10) if self._section else ''}{finding.section.upper()}")
            self._section = finding.section
        head = f"{finding.state:<8} {inert(finding.name):<{_NAME_WIDTH}} "
        print(_fit_encoding(_wrap(head, inert(finding.text))))
        if finding.remedy:
            print(
                _fit_encoding(
                    _wrap(" " * len(f"{'':<8} {'':<{_NAME_WIDTH}} "), f"-> {inert(finding.remedy)}")
                )
            )
        sys.stdout.flush()


def _wrap(head: str, text: str) -> str:
    indent = " " * (9 + _NAME_WIDTH + 1)
    return textwrap.fill(
        text, _WIDTH, initial_indent=head, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _fit_encoding(text: str) -> str:
    return fitting(text, sys.stdout)
