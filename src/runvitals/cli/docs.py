"""`runvitals docs`: the guides, in the terminal."""

from __future__ import annotations

import argparse
import json
import pydoc
import sys

from runvitals.cli import WrongUsage
from runvitals.cli.formatting import table
from runvitals.tools import guides


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals docs`."""
    parser.description = (
        "Without a topic, it lists them. In a terminal, a page is shown by the pager ($PAGER)."
    )
    parser.add_argument("topic", nargs="?", help="such as filters, or guides/filters")
    parser.add_argument("--search", metavar="WORDS", help="list the pages that have all of these words")
    parser.add_argument("--json", action="store_true", help="print JSON: topic, title, and text or excerpt")


def run(arguments: argparse.Namespace) -> int:
    """Print a page, or list those that there are, or that match; return 0."""
    if arguments.topic is not None and arguments.search is not None:
        raise WrongUsage("expected a topic or --search, not both")
    if arguments.topic is not None:
        page = guides.guide(arguments.topic)
        if arguments.json:
            print(json.dumps(page._asdict(), indent=1))
        elif sys.stdout.isatty():
            pydoc.pager(page.text)
        else:
            print(page.text, end="")
        return 0
    if arguments.search is not None:
        _print_matches(guides.search(arguments.search), arguments)
        return 0
    pages = [{"topic": page.topic, "title": page.title} for page in guides.guides()]
    print(json.dumps(pages, indent=1) if arguments.json else table([list(page.values()) for page in pages]))
    return 0


def _print_matches(matches: list[guides.FoundGuide], arguments: argparse.Namespace) -> None:
    if arguments.json:
        rows = [{**match.guide._asdict(), "excerpt": match.excerpt} for match in matches]
        print(
            json.dumps(
                [{name: row[name] for name in ("topic", "title", "excerpt")} for row in rows], indent=1
            )
        )
    elif not matches:
        print(f"no page has all of these words: {arguments.search}")
    for match in () if arguments.json else matches:
        print(f"{match.guide.topic}: {match.guide.title}\n  {match.excerpt}")
