"""`SweepStore`: the tables of sweeps together."""

from __future__ import annotations

from runvitals.server.database.database import Database
from runvitals.server.sweeps.storage.agents import AgentTable
from runvitals.server.sweeps.storage.runs import SweepRunTable
from runvitals.server.sweeps.storage.sweeps import SweepTable


class SweepStore:
    """Searches over many runs: `MetadataStore.sweeps`. Thread-safe.

    Attributes:
        sweeps, agents, runs: the tables.
    """

    def __init__(self, database: Database) -> None:
        self.sweeps = SweepTable(database)
        self.agents = AgentTable(database)
        self.runs = SweepRunTable(database)
