"""`LiveFindings`: the findings about a run of this machine while its journal is read on."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from runvitals.findings.finding import Findings
from runvitals.findings.judge import judge
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.run_watch import NewestValues, RunWatch, WatchedKeys
from runvitals.model.names import STEP
from runvitals.model.run import Run
from runvitals.model.state import RUNNING
from runvitals.readers.journals.findings import observe_reader
from runvitals.readers.journals.history import History
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.series import WriterSamples

LOOK_MS, LOOK_SAMPLES = 30_000, 4
"""It is looked at what is new so often, and not before so many samples of a host."""


class LiveFindings:
    """Judges a run soon after something changed in it, and seldom while nothing does.

    Args:
        reader: of the run. Who reads the journal calls `observe` between two polls.
        cpu_clock: CPU seconds of a thread.

    Example:
        >>> live = LiveFindings(reader)
        >>> observed = live.observe(reader.run(now_ms), now_ms)
        >>> if observed is not None:
        ...     live.judge(observed, now_ms)
        >>> live.findings.verdict
        'healthy'
    """

    def __init__(self, reader: RunReader, cpu_clock: Callable[[], float] = time.thread_time) -> None:
        self._reader = reader
        self._cpu_clock = cpu_clock
        self.findings: Findings | None = None
        self._watch: RunWatch | None = None
        self._lanes: dict[str, _Lane] = {}
        self._judged_state = RUNNING
        self._look_ms = 0
        self._cost_s = 0.0

    def observe(self, facts: Run, now_ms: int) -> ObservedRun | None:
        """Look at what is new, and return what is to be judged now; None if the last findings hold.

        Args:
            facts: of the run, as they are now.
        """
        began_s = self._cpu_clock()
        if self._watch is None:
            self._watch = RunWatch(facts.started_ms)
        is_due = self.findings is None or facts.state != self._judged_state
        if not is_due and (facts.state != RUNNING or now_ms < self._look_ms):
            return None
        interval_s = max((host.interval_s or 0.0 for host in facts.hosts), default=0.0)
        self._look_ms = now_ms + max(LOOK_MS, int(1000 * LOOK_SAMPLES * interval_s))
        self._watch.look(now_ms, [lane.newest() for lane in self._known_lanes()])
        if not is_due and self._watch.pace.due(now_ms) is None:
            return None
        self._judged_state = facts.state
        observed = observe_reader(self._reader, facts, now_ms)
        self._cost_s = self._cpu_clock() - began_s
        return observed

    def judge(self, observed: ObservedRun, now_ms: int) -> None:
        """Judge what was observed; the journal may be read on."""
        began_s = self._cpu_clock()
        self.findings = judge(observed)
        if self._watch is not None:
            self._watch.pace.judged(now_ms, self._cost_s + self._cpu_clock() - began_s)

    def _known_lanes(self) -> Sequence[_Lane]:
        for name, writer in self._reader.samples.writers.items():
            if f"samples {name}" not in self._lanes:
                self._lanes[f"samples {name}"] = _SampleLane(name, writer)
        for name, history in self._reader.histories.items():
            if f"rows {name}" not in self._lanes:
                self._lanes[f"rows {name}"] = _LoggedLane(name, history)
        return list(self._lanes.values())


class _Lane(ABC):
    """The newest number of each series of a writer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._set_keys(())

    def _set_keys(self, keys: Sequence[str]) -> None:
        self._keys = WatchedKeys(tuple(keys))
        self._times_ms: NDArray[np.int64] = np.zeros(len(keys), dtype=np.int64)
        self._values: NDArray[np.float64] = np.full(len(keys), np.nan)

    def _note(
        self, indices: NDArray[np.int64], times_ms: int | NDArray[np.int64], row: NDArray[np.float64]
    ) -> None:
        """Take the newest values of some keys; NaN is none."""
        present = ~np.isnan(row)
        self._values[indices[present]] = row[present]
        self._times_ms[indices[present]] = np.broadcast_to(times_ms, len(row))[present]

    def newest(self) -> NewestValues:
        """Return the newest number of each series."""
        self._update()
        return NewestValues(self._name, self._keys, self._times_ms.copy(), self._values.copy())

    @abstractmethod
    def _update(self) -> None:
        """Take the newest values."""


class _SampleLane(_Lane):
    """The lane of a monitor."""

    def __init__(self, name: str, writer: WriterSamples) -> None:
        super().__init__(f"samples {name}")
        self._writer = writer
        self._indices: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def _update(self) -> None:
        tables = self._writer.tables
        if len(tables) != len(self._indices):
            keys = tuple(self._writer.keys)
            if keys != self._keys.keys:
                self._set_keys(keys)
            index_of = {key: number for number, key in enumerate(keys)}
            self._indices = {names: np.array([index_of[key] for key in names]) for names in tables}
        for names, table in sorted(tables.items(), key=lambda item: item[1].seqs[-1]):
            self._note(self._indices[names], table.times[-1], np.array(table.rows[-len(names) :]))


class _LoggedLane(_Lane):
    """The lane of a process that logs."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(f"rows {name}")
        self._history = history

    def _update(self) -> None:
        keys = (*self._history.keys, STEP)
        if keys != self._keys.keys:
            self._set_keys(keys)
        newest = [self._history.newest(key) for key in keys[:-1]]
        newest.append((self._history.times[-1], self._history.steps[-1]))
        times_ms, values = zip(*newest, strict=True)
        self._note(np.arange(len(keys)), np.array(times_ms), np.array(values))
