"""A parser of arguments that takes options between positional ones too."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class IntermixedParser(argparse.ArgumentParser):
    """A parser of a command.

    Attributes:
        intermixes: whether options may stand between positional arguments, as in `leet inspect --json RUN`.
            Argparse would otherwise take the first of them for all.
    """

    intermixes = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[Any, list[str]]:
        if not self.intermixes:
            return super().parse_known_args(args, namespace)
        self.intermixes = False  # argparse calls this method again
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.intermixes = True
