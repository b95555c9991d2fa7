"""`AlertStore`: the tables of what users are notified, as `MetadataStore.alerts`."""

from __future__ import annotations

from runvitals.store.metadata.alerts.alert_settings import AlertSettingTable
from runvitals.store.metadata.alerts.apprise_destinations import AppriseDestinationTable
from runvitals.store.metadata.alerts.automations import AutomationTable
from runvitals.store.metadata.alerts.firings import FiringTable
from runvitals.store.metadata.alerts.message_limit import MessageLimitTable
from runvitals.store.metadata.alerts.outbox import OutboxTable
from runvitals.store.metadata.alerts.past_events import PastEvents
from runvitals.store.metadata.alerts.rules import AlertRuleTable
from runvitals.store.metadata.alerts.run_events import RunEventTable
from runvitals.store.metadata.alerts.user_slack import UserSlackTable
from runvitals.store.metadata.database import Database


class AlertStore:
    """What users are notified. All methods are thread-safe.

    Attributes:
        outbox, automations, apprise, user_slack, events, settings, rules, firings: the tables, by what they
            hold.
        message_limits: holds back messages of teams that send too many.
        past_events: finds what automations would have reacted to.
    """

    def __init__(self, database: Database) -> None:
        self.outbox = OutboxTable(database)
        self.message_limits = MessageLimitTable(database)
        self.automations = AutomationTable(database)
        self.apprise = AppriseDestinationTable(database)
        self.past_events = PastEvents(database)
        self.user_slack = UserSlackTable(database)
        self.events = RunEventTable(database)
        self.settings = AlertSettingTable(database)
        self.rules = AlertRuleTable(database)
        self.firings = FiringTable(database)
