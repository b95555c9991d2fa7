"""A parser of one command, which may take options between positional arguments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class IntermixedParser(argparse.ArgumentParser):
    """A parser of one command, which reports unknown arguments under its own usage.

    Attributes:
        intermixes: whether options may stand between positional arguments, as in `leet inspect --json RUN`.
            Argparse would otherwise take the first of them for all.
    """

    intermixes = False
    _intermixing = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments; unknown ones are an error of this command."""
        if self._intermixing:  # argparse calls this method again
            return super().parse_known_args(args, namespace)
        if self.intermixes:
            self._intermixing = True
            try:
                known, unknown = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._intermixing = False
        else:
            known, unknown = super().parse_known_args(args, namespace)
        if unknown:  # reported here, so that the usage is that of this command
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown
