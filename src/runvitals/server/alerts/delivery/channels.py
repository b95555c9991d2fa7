"""The channels of a server, by what targets of notifications begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.audience import may_read_run
from runvitals.server.alerts.delivery.apprise import AppriseChannel
from runvitals.server.alerts.delivery.channel import Channel, DeliveryFailed, number_of
from runvitals.server.alerts.delivery.mail import MailChannel
from runvitals.server.alerts.delivery.run_actions import RunActions
from runvitals.server.alerts.delivery.slack import SlackChannel
from runvitals.server.alerts.delivery.webhook import WebhookChannel
from runvitals.server.events.outbox import ChannelResponse, StoredNotification
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outside_services import OutsideServices
from runvitals.server.reports.audience import may_read_report


class Channels:
    """All channels.

    Args:
        directory: knows what users may do.
        clock: the time now, ms UTC.

    Attributes:
        slack, webhook, apprise: for routes that send something at once.
        by_target: the channels, for `NotificationDelivery`.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        outside: OutsideServices,
        mailer: Mailer,
        directory: Directory,
        clock: Callable[[], int],
    ) -> None:
        accounts, url = metadata_store.accounts, outside.known_server_url
        self.slack = SlackChannel(metadata_store, outside.box, outside.fetcher, url, clock)
        self.webhook = WebhookChannel(metadata_store, outside.box, outside.fetcher, url, clock)
        self.apprise = AppriseChannel(metadata_store, outside.box, outside.fetcher, url)
        mail = MailChannel(accounts, mailer, directory, clock)
        actions = RunActions(metadata_store, directory, clock)
        self.by_target: Mapping[str, Channel] = {
            "user": _to_readers(mail.deliver, metadata_store, directory),
            "member": mail.deliver_to_member,
            "stop": actions.stop,
            "tag": actions.tag,
            "command": actions.command,
            "slack": self.slack.deliver_to_team,
            "user-slack": _to_readers(self.slack.deliver_to_user, metadata_store, directory),
            "webhook": self.webhook.deliver,
            "apprise": self.apprise.deliver,
        }


def _to_readers(channel: Channel, metadata_store: MetadataStore, directory: Directory) -> Channel:
    """Return a channel to users that are active and may still read the run or report that it is about."""

    def deliver(due: StoredNotification) -> ChannelResponse:
        user_id = number_of(due)
        user = directory.user(user_id)
        if user is None or user.state != "active":
            raise DeliveryFailed("the user has no active account", "failed")
        number = due.payload.get("run_number")
        if number is not None:
            run = metadata_store.runs.place(number)
            if run is None or not may_read_run(directory, user_id, run):
                raise DeliveryFailed("the user may not read the run any more, or it was deleted", "failed")
        report_id, accounts = due.payload.get("report_id"), metadata_store.accounts
        if report_id is not None and not may_read_report(accounts, directory, user_id, report_id):
            raise DeliveryFailed("the user may not read the report any more, or it was deleted", "failed")
        return channel(due)

    return deliver
