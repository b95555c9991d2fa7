"""A terminal driver for Textual that survives the loss of the terminal."""

from __future__ import annotations

import errno
import io
import sys
from typing import TYPE_CHECKING

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from textual.app import App


class TerminalOutput(io.FileIO):
    """The file of a terminal. What is written to a terminal that is gone is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes; drop them if the terminal is gone."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:  # what Linux and macOS report after a hangup
                raise
            return memoryview(data).nbytes


class TerminalDriver(LinuxDriver):
    """Textual's driver, which goes on when the terminal is gone.

    Its own thread for output ends at the first error. The program would then wait for that thread for ever.
    """

    def __init__(
        self,
        app: App[object],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        assert sys.__stderr__ is not None  # Textual has checked it
        output = TerminalOutput(sys.__stderr__.fileno(), "w", closefd=False)
        self._file = io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors="replace")
