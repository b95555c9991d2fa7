"""`UsageStore`: the tables of usage and cost, as `MetadataStore.usage`."""

from __future__ import annotations

from runvitals.store.metadata.database import Database
from runvitals.store.metadata.usage.figures import UsageFigureTable
from runvitals.store.metadata.usage.marks import UsageMarkTable
from runvitals.store.metadata.usage.rates import RateTable
from runvitals.store.metadata.usage.reading import UsageReading


class UsageStore:
    """What runs used. All methods are thread-safe.

    Attributes:
        marks: the days that must be computed.
        figures: what was computed.
        reading: reads it, for reports.
        rates: prices.
    """

    def __init__(self, database: Database) -> None:
        self.marks = UsageMarkTable(database)
        self.figures = UsageFigureTable(database)
        self.reading = UsageReading(database)
        self.rates = RateTable(database)
