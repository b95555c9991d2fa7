"""The condition of a server's stores: whether they can be written to, told at once.

Also while a database or a disk does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from runvitals.server.events.outbox import OutboxLength
from runvitals.server.files.disk_space import DiskSpace
from runvitals.server.http.latest_reading import LatestReading
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import MetadataStoreUnavailable
from runvitals.store.samples.interface import SampleStore, StoreError, StoreStats

_NOT_READ_YET: Final = StoreStats(0, 0, 0, 0, 0, None)
_LATE_S: Final = 10.0
"""A reading that takes longer is mentioned."""


class StoreCondition:
    """Statistics and problems of the stores. For use in the event loop.

    Args:
        disk: of the files; None: the server keeps none.
        away_s: for how long the metadata store has not answered; 0 if it does.
        known_s: for how long samples of known runs are accepted meanwhile.
    """

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        disk: DiskSpace | None,
        away_s: Callable[[], float],
        known_s: Callable[[], float],
    ) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self._disk = disk
        self._away_s = away_s
        self._known_s = known_s
        self._stats = LatestReading(self._read, _NOT_READ_YET)
        no_length: OutboxLength | None = None
        self._outbox = LatestReading[OutboxLength | None](metadata_store.alerts.outbox.length, no_length)

    async def stats(self) -> StoreStats:
        """Statistics of the sample store, with the problem of whichever store has one."""
        stats, metadata_store = await self._stats.newest(), self._metadata_store
        problem = metadata_store.problem() or metadata_store.write_problem
        return replace(stats, problem=stats.problem or problem)

    async def readiness(self) -> tuple[str | None, list[str]]:
        """Return why samples cannot be made durable, None if they can; and what else needs attention."""
        stats, metadata_store = await self._stats.newest(), self._metadata_store
        problem, warnings = stats.problem or metadata_store.problem(), list(stats.warnings)
        if self._stats.late_s > _LATE_S:
            late_s = round(self._stats.late_s)
            warnings.append(f"the state is that of {late_s} s ago: a store or a disk does not answer")
        failed, away_s = metadata_store.write_problem, self._away_s()
        if failed is not None and metadata_store.is_local:
            problem = problem or failed
        elif failed is not None:  # samples of known runs are stored all the same
            warnings.append(failed)
        if away_s:
            away = f"the metadata store has not answered for {round(away_s)} s"
            if away_s > self._known_s():
                problem = problem or away
            warnings.append(f"{away}: only samples of known runs are stored")
        return problem, warnings

    async def outbox(self) -> OutboxLength | None:
        """Return how many notifications wait.

        None if that is not known: the problem of the store says why.
        """
        try:
            return await self._outbox.newest()
        except MetadataStoreUnavailable:
            return None

    def _read(self) -> StoreStats:
        try:
            stats = self._store.stats()
        except StoreError as error:
            stats = replace(_NOT_READ_YET, problem=str(error))
        if self._disk is None:
            return stats
        warning = self._disk.warning()
        return replace(
            stats,
            problem=stats.problem or self._disk.problem(),
            warnings=(*stats.warnings, *([] if warning is None else [warning])),
        )
