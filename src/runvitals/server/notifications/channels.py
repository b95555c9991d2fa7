"""The channels of a server, by what targets of notifications begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runvitals.accounts.directory import Directory
from runvitals.mail.mailer import Mailer
from runvitals.server.notifications.channel import Channel
from runvitals.server.notifications.mail import MailChannel
from runvitals.server.notifications.run_changes import RunChanges
from runvitals.server.notifications.slack import SlackChannel
from runvitals.server.notifications.webhook import WebhookChannel
from runvitals.server.outside_services import OutsideServices
from runvitals.store.metadata import MetadataStore


class Channels:
    """All channels.

    Args:
        directory: knows what users may do.
        clock: the time now, ms UTC.

    Attributes:
        slack, webhook: for routes that send something at once.
        by_target: the channels, for `Delivery`.
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
        self.webhook = WebhookChannel(accounts, outside.box, outside.fetcher, url, clock)
        mail = MailChannel(accounts, mailer, directory, clock)
        changes = RunChanges(metadata_store, directory, clock)
        self.by_target: Mapping[str, Channel] = {
            "user": mail.deliver,
            "member": mail.deliver_to_member,
            "stop": changes.stop,
            "tag": changes.tag,
            "slack": self.slack.deliver_to_team,
            "user-slack": self.slack.deliver_to_user,
            "webhook": self.webhook.deliver,
        }
