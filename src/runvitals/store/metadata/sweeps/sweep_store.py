"""`SweepStore`: the tables of sweeps together."""

from __future__ import annotations

from runvitals.store.metadata.database import Database
from runvitals.store.metadata.sweeps.agents import AgentTable
from runvitals.store.metadata.sweeps.runs import SweepRunTable
from runvitals.store.metadata.sweeps.sweeps import SweepTable


class SweepStore:
    """Searches over many runs: `MetadataStore.sweeps`. Thread-safe.

    Attributes:
        sweeps, agents, runs: the tables.
    """

    def __init__(self, database: Database) -> None:
        self.sweeps = SweepTable(database)
        self.agents = AgentTable(database)
        self.runs = SweepRunTable(database)
