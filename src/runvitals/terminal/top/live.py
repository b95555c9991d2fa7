"""The loop of `runvitals top`: reads and draws repeatedly in a terminal, or once as plain text."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from runvitals.agent.monitor.sampler import Sampler, Schedule
from runvitals.base.terminal_text import shows_unicode
from runvitals.sdk.probe import probe
from runvitals.terminal.top.processes import ProcessLine, ProcessList
from runvitals.terminal.top.view import Style, View
from runvitals.terminal.top.vitals import Vitals

# Between the first two samples. CPU utilisation needs two.
_FIRST_S = 0.3
# How long a snapshot waits for drivers that are slow to start.
_PATIENCE_S = 5.0
_SNAPSHOT_PROCESSES = 10
_MOST_PROCESSES = 100
_QUIT = frozenset(b"qQ\x03\x04")
_HINT = "q quits"


class MachineSampler:
    """Samples this machine.

    Args:
        values: resolved settings.
        interval_s: intended interval between samples.
    """

    def __init__(self, values: Mapping[str, Any], interval_s: float) -> None:
        found, _ = probe(values, interval_s)
        self.sample_values: dict[str, float] = {}
        self.vitals = Vitals()
        self.processes: list[ProcessLine] = []
        self._collectors = found.collectors
        self._sampler = Sampler(found.collectors, interval_s, self._report, values["gpu_ids"])
        self._processes = ProcessList(f"{values['host_root']}/proc")

    def sample(self) -> None:
        """Take a sample and update `vitals` and `processes`."""
        now_s = self._sample()
        self.processes = self._processes.heaviest(_MOST_PROCESSES, now_s)

    def sample_everything(self) -> None:
        """The same, with all processes, unordered."""
        now_s = self._sample()
        self.processes = self._processes.everything(now_s)

    def _sample(self) -> float:
        now_s = time.monotonic()
        self.sample_values = self._sampler.sample(now_s)
        self.vitals.machine.update(self._sampler.news().get("machine", {}))
        self.vitals.add(now_s, self.sample_values)
        return now_s

    @property
    def pending(self) -> bool:
        """Whether a source has yet to return its first values."""
        return any(getattr(collector, "pending", False) for collector in self._collectors)

    def close(self) -> None:
        """Release the sources."""
        self._sampler.close()

    def _report(self, name: str, error: Exception | None) -> None:
        if error is None:
            self.vitals.failures.pop(name, None)
        else:
            self.vitals.failures[name] = f"{type(error).__name__}: {error}"


def live(values: Mapping[str, Any], interval_s: float) -> int:
    """Show this machine on the terminal of stdin and stdout until `q`, Ctrl-C, or until it is closed.

    Returns:
        The exit code: 0.

    Raises:
        SystemExit: 128 + n on signal n.
        KeyboardInterrupt: Ctrl-C.
    """
    from runvitals.terminal.top.screen import Screen  # Unix only

    machine = MachineSampler(values, interval_s)
    unicode, colours = shows_unicode(sys.stdout), not os.environ.get("NO_COLOR")
    try:
        with Screen(sys.stdin.fileno(), sys.stdout.fileno()) as screen:

            def draw() -> None:
                style = Style(screen.size.columns, screen.size.lines, unicode, colours)
                view = View(socket.gethostname(), style, _HINT)
                screen.draw(view.lines(machine.vitals, machine.processes, time.time()))

            machine.sample()
            draw()
            schedule = Schedule(time.monotonic() + min(_FIRST_S, interval_s), interval_s)
            while True:
                now_s = time.monotonic()
                if now_s >= schedule.next_s:
                    schedule.advance(now_s)
                    machine.sample()
                    draw()
                keys = screen.keys(schedule.next_s - time.monotonic())
                if keys is None or _QUIT.intersection(keys):
                    return 0
                if screen.resized:
                    screen.resized = False
                    draw()
    finally:
        machine.close()


def snapshot(values: Mapping[str, Any], out: TextIO, width: int) -> None:
    """Write the current state of this machine as plain text, without escape sequences."""
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
    view = View(socket.gethostname(), Style(width, height, shows_unicode(out), colours=False))
    for line in view.lines(machine.vitals, machine.processes[:_SNAPSHOT_PROCESSES], time.time()):
        print(line.rstrip(), file=out)
