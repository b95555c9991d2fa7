"""`runvitals top` as plain text: once, or again and again on a terminal, with nothing but Python."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NoReturn, TextIO

from runvitals.base.terminal_text import shows_unicode
from runvitals.monitoring.monitor.sampler import Schedule
from runvitals.terminal.top.machine_sampler import MachineSampler
from runvitals.terminal.top.view import Style, View

# Seconds between the first two samples: CPU utilisation needs two.
_FIRST_S = 0.3
# How long a snapshot waits for drivers that are slow to start.
_PATIENCE_S = 5.0
_SNAPSHOT_PROCESSES = 10
_HINT = "Ctrl-C quits"
_CLEAR, _HOME, _LINE_END, _REST = "\x1b[2J", "\x1b[H", "\x1b[K\n", "\x1b[J"


def print_repeatedly(values: Mapping[str, Any], interval_s: float, out: TextIO) -> NoReturn:
    """Write this machine's state over the one before, until Ctrl-C.

    Args:
        values: resolved settings.
        out: a terminal.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    machine = MachineSampler(values, interval_s)
    # `out` may be a stream of a command, which makes escape sequences harmless.
    with (
        closing(machine),
        open(out.fileno(), "w", encoding="utf-8", errors="replace", closefd=False) as terminal,
    ):
        terminal.write(_CLEAR)
        schedule = Schedule(time.monotonic() + min(_FIRST_S, interval_s), interval_s)
        while True:
            machine.sample()
            size = shutil.get_terminal_size()
            style = Style(size.columns, size.lines - 1, shows_unicode(out))  # a line for the cursor
            lines = View(socket.gethostname(), style, _HINT).lines(
                machine.vitals, machine.processes, time.time()
            )
            terminal.write(_HOME + "".join(f"{line}{_LINE_END}" for line in lines) + _REST)
            terminal.flush()
            time.sleep(max(schedule.next_s - time.monotonic(), 0.0))
            schedule.advance(time.monotonic())


def print_snapshot(values: Mapping[str, Any], out: TextIO, width: int) -> None:
    """Write the current state of this machine, without escape sequences."""
    machine = MachineSampler(values, _FIRST_S)
    try:
        machine.sample()
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            time.sleep(_FIRST_S)
            machine.sample()
            if not machine.pending or time.monotonic() > until_s:
                break
    finally:
        machine.close()
    height = 12 + len(machine.vitals.accelerators) + _SNAPSHOT_PROCESSES
    view = View(socket.gethostname(), Style(width, height, shows_unicode(out)))
    for line in view.lines(machine.vitals, machine.processes[:_SNAPSHOT_PROCESSES], time.time()):
        print(line.rstrip(), file=out)
