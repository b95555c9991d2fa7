"""`UsageStore`: the tables of usage and cost, as `MetadataStore.usage`."""

from __future__ import annotations

from collections.abc import Mapping

from runvitals.server.database.database import Database
from runvitals.server.events.usage_marks import UsageMarkTable
from runvitals.server.usage.storage.alerts import UsageAlertTable
from runvitals.server.usage.storage.cost_centres import CostCentreTable
from runvitals.server.usage.storage.documents import BillingDocumentTable
from runvitals.server.usage.storage.figures import UsageFigureTable
from runvitals.server.usage.storage.machines import UsageMachineTable
from runvitals.server.usage.storage.plans import ORGANISATION, PlanTable
from runvitals.server.usage.storage.rates import RateTable
from runvitals.server.usage.storage.reading import UsageReading
from runvitals.server.usage.storage.statements import StatementTable


class UsageStore:
    """The usage of runs, prices, plans and statements. All methods are thread-safe.

    Attributes:
        marks: the days that must be computed.
        figures: what was computed.
        reading: reads it, for reports.
        machines: the CPUs and slices of GPUs that runs use.
        rates: prices.
        cost_centres: who pays.
        documents: the settings of usage alerts, and the settlement data.
        statements: what was charged for months.
        plans, alerts: limits, and the mails about those that were passed.
        refused: why the new runs of a team or user are refused, by id, or of everyone, by `ORGANISATION`: of
            this process, set after each roll-up.
    """

    def __init__(self, database: Database) -> None:
        self.marks = UsageMarkTable(database)
        self.figures = UsageFigureTable(database)
        self.reading = UsageReading(database)
        self.machines = UsageMachineTable(database)
        self.rates = RateTable(database)
        self.cost_centres = CostCentreTable(database)
        self.documents = BillingDocumentTable(database)
        self.plans = PlanTable(database)
        self.statements = StatementTable(database)
        self.alerts = UsageAlertTable(database)
        self.refused: Mapping[int, str] = {}

    def refusal(self, entity_id: int) -> str | None:
        """Why new runs of a team or user are refused; None: they are not."""
        return self.refused.get(entity_id) or self.refused.get(ORGANISATION)
