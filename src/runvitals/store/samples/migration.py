"""Copies all samples from one store to another, of another engine, run by run.

Each run is compared by a checksum of all its samples before and after it is copied. So a copy that was
interrupted goes on where it was, and a second one copies only what has changed: the first may take hours,
while a server uses the source, and the second, after that server has ended, seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from runvitals.model.durations import DAY_MS
from runvitals.store.samples.interface import ReadResult, SeriesSamples, StoreError
from runvitals.store.samples.sqlite.log import Pairing

Ranges = Mapping[int, Sequence[tuple[int, int]]]
"""Writer → ranges of the numbers of its stored batches, both included, ascending."""
_DAYS_AT_ONCE: Final = 1


class MigratableStore(Protocol):
    """A store that can be migrated: more than every sample store can do."""

    @property
    def name(self) -> str:
        """The name of the kind of store."""

    @property
    def pairing(self) -> Pairing | None:
        """The pairing with a metadata store; None if there is none yet."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever stored."""

    def pair(self, pairing: Pairing) -> None:
        """Pair the store with a metadata store."""

    def read(
        self, runs: Sequence[int], metrics: Sequence[int] | None, t0_ms: int, t1_ms: int
    ) -> ReadResult[SeriesSamples]:
        """Read the samples of series as they were written."""

    def delete(self, runs: Sequence[int]) -> None:
        """Delete everything about these runs."""

    def flush(self) -> None:
        """Seal everything that was appended."""

    def runs(self) -> list[int]:
        """Return the ids of the runs that have samples or stored batches, ascending."""

    def days(self, run: int) -> list[int]:
        """Return the days since 1970, UTC, on which a run may have samples, ascending."""

    def stored_batches(self, run: int) -> Ranges:
        """Return the batches of a run that were stored."""

    def put(self, run: int, series: Sequence[SeriesSamples]) -> None:
        """Store samples of a run durably. They replace none that are there."""

    def put_batches(self, run: int, stored: Ranges) -> None:
        """Note durably that these batches of a run were stored."""


@dataclass(slots=True)
class MigrationTotals:
    """Numbers of runs, by what became of them.

    Args:
        unchanged: the target had already.
        changing: got samples while they were copied: copy them again when their server has ended.
        samples: that were copied.
    """

    copied: int = 0
    changing: int = 0
    unchanged: int = 0
    samples: int = 0


def migrate(
    source: MigratableStore, target: MigratableStore, report: Callable[[MigrationTotals], None]
) -> MigrationTotals:
    """Copy all runs, and let the target belong to the metadata store of the source.

    Args:
        report: called after each run.

    Raises:
        StoreError: samples of the source are damaged, the target belongs to other runs, or what was written
            is read differently.
    """
    _check_target(source, target)
    if source.pairing is not None:
        target.pair(source.pairing)
    totals = MigrationTotals()
    runs = source.runs()
    gone = sorted(set(target.runs()).difference(runs))
    if gone:
        target.delete(gone)
    for run in runs:
        before = checksum(source, run)
        if checksum(target, run) == before:
            totals.unchanged += 1
        else:
            totals.samples += _copy(source, target, run)
            copied = checksum(target, run)
            if copied == before or copied == (now := checksum(source, run)):
                totals.copied += 1
            elif now == before:
                raise StoreError(
                    f"{target.name} does not return the samples of run {run} as {source.name} does"
                )
            else:
                totals.changing += 1
        report(totals)
    return totals


def _check_target(source: MigratableStore, target: MigratableStore) -> None:
    ours, theirs = source.pairing, target.pairing
    if target.is_new:
        return
    if theirs is None or ours is None or ours.id != theirs.id:
        raise StoreError(f"{target.name} is not empty, and not a copy of {source.name}")
    if theirs.starts > ours.starts:
        raise StoreError(
            f"a server has used {target.name} since it was copied from {source.name}: what it has stored "
            "would be lost"
        )


def _copy(source: MigratableStore, target: MigratableStore, run: int) -> int:
    """Copy a run anew. Returns how many samples it has."""
    target.delete([run])
    # A batch that is listed is complete, in both, also if a server adds some meanwhile.
    stored = source.stored_batches(run)
    samples = 0
    for series in _read(source, run):
        target.put(run, series)
        samples += sum(len(metric_samples.t) for metric_samples in series)
    target.put_batches(run, stored)
    target.flush()
    return samples


def checksum(store: MigratableStore, run: int) -> str:
    """Return a checksum of all samples of a run, bit by bit, and of which batches were stored."""
    digest = hashlib.sha256()
    for series in _read(store, run):
        for metric_samples in series:
            digest.update(b"%d %d " % (metric_samples.metric, len(metric_samples.t)))
            digest.update(metric_samples.t.tobytes())
            digest.update(metric_samples.values.tobytes())
    for writer, ranges in sorted(store.stored_batches(run).items()):
        digest.update(b"%d %r " % (writer, [tuple(metric_samples) for metric_samples in ranges]))
    return digest.hexdigest()


def _read(store: MigratableStore, run: int) -> Iterator[list[SeriesSamples]]:
    """Yield the samples of a run, day by day."""
    for day in store.days(run):
        result = store.read([run], None, day * DAY_MS, (day + _DAYS_AT_ONCE) * DAY_MS - 1)
        if result.damaged:
            raise StoreError(f"{store.name} has damaged samples: {result.damaged[0].reason}")
        if result.series:
            yield result.series
