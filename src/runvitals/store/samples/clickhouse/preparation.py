"""Prepares ClickHouse before it is used: when the store is opened, or once ClickHouse can be reached."""

from __future__ import annotations

from collections.abc import Callable

from runvitals.store.samples.clickhouse import schema
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.schema import Features
from runvitals.store.samples.interface import StoreError, StoreUnavailable


class Preparation:
    """Creates or migrates the tables, then runs a check of them. One thread at a time.

    Args:
        clickhouse: for this alone.
        others: what everything else uses. Until all is done, its requests fail.
        check: run once the tables are there; raises `StoreError` if they must not be used.

    Attributes:
        pending: why it is not done; None when it is.
        refusal: why no batch may be accepted; None if they may.
    """

    def __init__(self, clickhouse: ClickHouse, others: ClickHouse, check: Callable[[], None]) -> None:
        self._clickhouse = clickhouse
        self._others = others
        self._features: Features | None = None
        self._check = check
        self.pending: str | None = f"ClickHouse at {clickhouse.address} was not reached yet"
        self.refusal: str | None = None
        others.withheld = self.pending

    @property
    def features(self) -> Features:
        """The features of the server; raises StoreUnavailable before it was reached."""
        if self._features is None:
            raise StoreUnavailable(f"ClickHouse at {self._clickhouse.address} was not reached yet")
        return self._features

    def check_done(self) -> None:
        """Raise StoreUnavailable before the preparation is done."""
        if self.pending is not None:
            raise StoreUnavailable(self.pending)

    def wait(self, reason: str) -> None:
        """Do nothing, and accept nothing, before `check_by` is called."""
        self.refusal = reason

        def not_yet() -> None:
            raise StoreUnavailable(reason)

        self._check = not_yet

    def check_by(self, check: Callable[[], None], accepts: bool) -> None:
        """Check by another function from now on; `accepts` batches before it succeeds, but nothing else."""
        self._check = check
        reason = self.pending or f"the tables at {self._clickhouse.address} are not paired yet"
        self.refusal = None if accepts else reason
        self.pending = self._others.withheld = reason

    def run(self) -> None:
        """Do it, unless it is done.

        Raises:
            StoreUnavailable: ClickHouse cannot be reached.
            StoreError: its tables must not be used: nothing more is accepted.
        """
        if self.pending is None:
            return
        try:
            self._features = schema.features(self._clickhouse)
            schema.prepare(self._clickhouse, self._features)
            self._check()
        except StoreError as error:
            self.pending = self._others.withheld = str(error)
            if not isinstance(error, StoreUnavailable):
                self.refusal = str(error)
            raise
        self._others.settings = self._features.supported(do_not_merge_across_partitions_select_final="1")
        self.pending = self.refusal = self._others.withheld = None
