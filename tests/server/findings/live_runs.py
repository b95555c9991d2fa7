"""Running runs of a shared server whose samples arrive little by little, and the thread that judges them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runvitals.model.durations import MINUTE_MS
from runvitals.model.names import STEP
from runvitals.server.events.finding_changes import FindingChange, FindingListener
from runvitals.server.findings.judge_thread import EVERY_S, JudgeThread
from runvitals.server.findings.kept_findings import KeptFindings
from runvitals.server.findings.kept_result import KeptResult
from runvitals.server.library.run_library import RunView
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.findings.scenarios.course import START_MS, Course

STEP_S = 30


@dataclass(slots=True)
class _Lane:
    """What a writer sends."""

    writer: RegisteredWriter
    metrics: tuple[int, ...]
    times_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    seq: int = 0

    def batch(self, from_ms: int, to_ms: int) -> SampleBatch | None:
        """Return what it sends between two times; None if that is nothing."""
        first, end = np.searchsorted(self.times_ms, (from_ms, to_ms)).tolist()
        if first == end:
            return None
        self.seq += 1
        rows = np.ascontiguousarray(self.values[first:end])
        return SampleBatch(
            self.writer.lane_id, self.writer.writer_id, self.seq, self.metrics, self.times_ms[first:end], rows
        )


class CostlyFindings(KeptFindings):
    """Findings whose judgements are said to take CPU time.

    Attributes:
        cost_s: of one.
        spent_s: of all.
        judged: when which runs were judged.
    """

    cost_s = 0.0
    spent_s = 0.0

    def __init__(
        self,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        listeners: Sequence[FindingListener],
        note_change: Callable[[int], None],
    ) -> None:
        super().__init__(metadata_store, clock, listeners, note_change)
        self.judged: list[tuple[int, int]] = []

    def judge(self, view: RunView, now_ms: int) -> KeptResult:
        """Judge a run and keep the result."""
        self.spent_s += self.cost_s
        assert view.number is not None
        self.judged.append((now_ms, view.number))
        return super().judge(view, now_ms)


@dataclass
class LiveRuns:
    """Runs by name, as courses.

    Attributes:
        now_ms: what the thread takes the time to be.
        heard: the changes of findings, with the time when they were noticed.
        silent: runs of which nothing arrives any more, though they are said to be alive.
        cpu_clock: of the thread; by default what judgements are said to take.
        turns_s: CPU time of its turns.
    """

    folder: Path
    cpu_clock: Callable[[], float] | None = None
    now_ms: int = START_MS
    heard: list[tuple[int, FindingChange]] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    turns_s: float = 0.0

    def __post_init__(self) -> None:
        self.store = SqliteChunks(str(self.folder / "store"))
        self.metadata_store: MetadataStore = open_metadata_store(str(self.folder / "catalogue.db"))
        self.ids: dict[str, int] = {}
        self._lanes: dict[str, list[_Lane]] = {}
        self.findings = CostlyFindings(
            self.metadata_store, lambda: self.now_ms, [self._hear], self.changed.append
        )
        self.restart()

    def _hear(self, changes: Iterable[FindingChange]) -> None:
        self.heard += [(self.now_ms, change) for change in changes]

    def restart(self) -> None:
        """Let another server lead."""
        self.thread = JudgeThread(
            self.store,
            self.metadata_store,
            self.findings,
            lambda: self.now_ms,
            self.cpu_clock or (lambda: self.findings.spent_s),
        )

    def close(self) -> None:
        self.store.close()
        self.metadata_store.close()

    def add(self, names: Iterable[str], course: Course, keys: Iterable[str] = ()) -> None:
        """Begin runs that go on as a course does.

        Args:
            keys: of the series that they have; by default all.
        """
        names = list(names)
        (host,) = course.samples()
        series = {key: host.series[key] for key in keys or host.series}
        times_ms = next(iter(series.values()))[0]
        values = np.column_stack([of_key for _, of_key in series.values()])
        monitors = self._join(names, "monitor", course.interval_s)
        self._take(names, monitors, tuple(series), times_ms, values)
        logged = course.columns()
        if logged:
            rows = np.column_stack(
                [*(column.values for column in logged.values()), np.arange(len(course.steps_s))]
            )
            steps_ms = START_MS + (course.steps_s * 1000).astype(np.int64)
            trainers = self._join(names, "train", course.interval_s)
            self._take(names, trainers, (*logged, STEP), steps_ms, rows)

    def _join(self, names: list[str], role: str, interval_s: float) -> list[RegisteredWriter]:
        rank = 0 if role == "train" else None
        joining = [
            WriterRegistration(
                name, f"{role}.{name}.1", "digits", role, "node0", None, rank, interval_s, self.now_ms
            )
            for name in names
        ]
        return self.metadata_store.writers.join(joining, self.now_ms)

    def _take(
        self,
        names: list[str],
        writers: list[RegisteredWriter],
        keys: tuple[str, ...],
        times_ms: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:
        schema = self.metadata_store.metrics.schema(keys)
        self.metadata_store.metrics.record_schemas([(writer.writer_id, schema.id) for writer in writers])
        for name, writer in zip(names, writers, strict=True):
            self.ids[name] = writer.run_id
            self._lanes.setdefault(name, []).append(_Lane(writer, schema.metric_ids, times_ms, values))

    def go_on(self, minutes: float) -> None:
        """Let the runs go on; the thread takes its turns."""
        until_ms = self.now_ms + int(minutes * MINUTE_MS)
        while self.now_ms < until_ms:
            next_ms = self.now_ms + STEP_S * 1000
            heard = [lane for name, lanes in self._lanes.items() if name not in self.silent for lane in lanes]
            batches = [batch for lane in heard if (batch := lane.batch(self.now_ms, next_ms)) is not None]
            self.store.append(batches)
            self.now_ms = next_ms
            self.metadata_store.writers.record_heartbeats(
                [
                    WriterHeartbeat(lane.writer.writer_id, next_ms, next_ms)
                    for lanes in self._lanes.values()
                    for lane in lanes
                ]
            )
            began_s = time.thread_time()
            for _ in range(int(STEP_S / EVERY_S)):
                self.thread.judge_due()
            self.turns_s += time.thread_time() - began_s

    def kept(self, name: str) -> KeptResult | None:
        """Return what is kept of a run."""
        return self.metadata_store.findings.of_run(self.ids[name])

    def changes(self, name: str, finding_id: str) -> list[tuple[str, int, float]]:
        """Return what was heard of a finding: what changed, its number and after how many minutes."""
        return [
            (type(change).__name__, change.number, (at_ms - START_MS) / MINUTE_MS)
            for at_ms, change in self.heard
            if change.run_id == self.ids[name] and change.finding.id == finding_id
        ]
