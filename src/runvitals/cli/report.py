"""`runvitals report export`: a report of a server as a file."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.cli import WrongUsage

_FORMATS = ("html", "md", "pdf")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals report`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser(
        "export",
        help="write a report and what its panels show to a file",
        description="Write a report as others see it, with what its panels show now. HTML is one file with "
        "charts and images in it and no scripts. Charts show the metrics that panels read, not what "
        "expressions make of them.",
    )
    export.add_argument("report", metavar="REPORT", help="its id, or the address of its page")
    export.add_argument("--format", choices=_FORMATS, help="default: by the name of the file, otherwise html")
    export.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    export.add_argument(
        "--server", metavar="URL", help="default: RUNVITALS_SERVER, or that of `runvitals login`"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write a report; return 0."""
    from runvitals.readers.servers.reports.exported_report import read_report

    output = arguments.output
    kind = arguments.format or _format_of(output)
    if kind == "pdf" and output is None and sys.stdout.isatty():
        raise WrongUsage("a PDF is no text: name a file with --output")
    content = _content(read_report(arguments.report, arguments.server), kind)
    if output is None:
        if sys.stdout.isatty():  # what others wrote must not control the terminal
            print("\n".join(map(inert, content.decode("utf-8").split("\n"))))
        else:
            sys.stdout.buffer.write(content)
        return 0
    with open(output, "wb") as file:
        file.write(content)
    print(f"{inert(output)}: {len(content):,} bytes")
    return 0


def _format_of(output: str | None) -> str:
    end = os.path.splitext(output or "")[1].removeprefix(".").lower()
    return end if end in _FORMATS else "html"


def _content(exported: Any, kind: str) -> bytes:
    if kind == "pdf":
        from runvitals.readers.servers.reports.pdf_pages import pdf_of

        return pdf_of(exported)
    if kind == "md":
        from runvitals.readers.servers.reports.markdown_text import markdown_of

        return markdown_of(exported).encode("utf-8", "replace")
    from runvitals.readers.servers.reports.html_page import html_of

    return html_of(exported).encode("utf-8", "replace")
