"""`AlertStore`: the tables of alerts, as `MetadataStore.alerts`. Their one list, which every server loads."""

from __future__ import annotations

from runvitals.server.alerts.storage.alert_settings import AlertSettingTable
from runvitals.server.alerts.storage.automations import AutomationTable
from runvitals.server.alerts.storage.destinations import DestinationTable
from runvitals.server.alerts.storage.findings import FindingReading
from runvitals.server.alerts.storage.firings import FiringTable
from runvitals.server.alerts.storage.inbox import InboxTable
from runvitals.server.alerts.storage.message_limit import MessageLimitTable
from runvitals.server.alerts.storage.past_events import PastEvents
from runvitals.server.alerts.storage.rules import AlertRuleTable
from runvitals.server.database.database import Database
from runvitals.server.events.outbox import OutboxTable
from runvitals.server.events.run_events import RunEventTable


class AlertStore:
    """The tables of alerts. All methods are thread-safe.

    Attributes:
        outbox, automations, destinations, events, settings, rules, firings: the tables, by what they hold.
        message_limits: holds back messages of teams that send too many.
        past_events: finds what automations would have reacted to.
        findings: what rules read of the findings about runs.
        inbox: what the bell of the page shows.
    """

    def __init__(self, database: Database) -> None:
        self.outbox = OutboxTable(database)
        self.message_limits = MessageLimitTable(database)
        self.automations = AutomationTable(database)
        self.destinations = DestinationTable(database)
        self.past_events = PastEvents(database)
        self.events = RunEventTable(database)
        self.settings = AlertSettingTable(database)
        self.rules = AlertRuleTable(database)
        self.firings = FiringTable(database)
        self.findings = FindingReading(database)
        self.inbox = InboxTable(database)
