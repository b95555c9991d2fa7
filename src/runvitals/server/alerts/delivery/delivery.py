"""`NotificationDelivery`: the thread that delivers what is in the outbox."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.server.alerts.delivery.channel import Channel, DeliveryFailed
from runvitals.server.events.outbox import OutboxTable, StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.store.supervised_thread import SupervisedThread

_RETRIES_MS: Final = (MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 6 * HOUR_MS)
_SPREAD: Final = 0.2
_AT_ONCE: Final = 8
_POLL_S: Final = 1.0
_MAX_PAUSE_S: Final = 60.0

log = logging.getLogger("runvitals.notifications")


def hold_back_messages(metadata_store: MetadataStore, now_ms: int) -> None:
    """Hold back what is over the organisation's limit of messages of a team in an hour."""
    most = with_defaults(metadata_store.accounts.settings.all())["team_messages_an_hour"]
    count = metadata_store.alerts.message_limits.hold_back(now_ms, most)
    if count:
        log.warning("held back %d messages of teams that sent %d in this hour", count, most)


class NotificationDelivery:
    """Delivers notifications. Servers that share a metadata store share the outbox.

    A notification is delivered at least once: again if a server dies before it has noted the delivery.

    Args:
        channels: by what targets begin with.
        clock: the time now, ms UTC.
        hold_back: ends what is over the limit of a team's messages, at a time, before anything is delivered.
        chance: a random number from 0 to 1, for the time of the next attempt.

    Attributes:
        thread: delivers what is due; start and close it.
    """

    def __init__(
        self,
        outbox: OutboxTable,
        channels: Mapping[str, Channel],
        clock: Callable[[], int],
        chance: Callable[[], float] = random.random,
        hold_back: Callable[[int], object] = lambda now_ms: None,
    ) -> None:
        self._hold_back = hold_back
        self._outbox = outbox
        self._channels = channels
        self._clock = clock
        self._chance = chance
        self._new = threading.Event()
        self._workers = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="runvitals-notifications")
        self.thread = SupervisedThread(
            "notifications", self._turn, wake=self._new.set, longest_pause_s=_MAX_PAUSE_S
        )

    def deliver_due(self) -> int:
        """Deliver what is due, one notification to each target; returns how many attempts were made."""
        now_ms = self._clock()
        if not self._outbox.is_any_due(now_ms):
            return 0
        self._hold_back(now_ms)
        due = self._outbox.due(now_ms)
        return sum(self._workers.map(self._attempt, due))

    def close(self) -> None:
        """Finish the attempts that were begun, and end the thread."""
        self.thread.close()
        self._workers.shutdown()

    def _turn(self) -> bool:
        if not self.thread.closing.is_set() and not self.deliver_due():
            self._new.wait(_POLL_S)
            self._new.clear()
        return not self.thread.closing.is_set()

    def _attempt(self, due: StoredNotification) -> bool:
        if self.thread.closing.is_set() or not self._outbox.claim(due, self._clock()):
            return False
        channel = self._channels.get(due.target.partition(":")[0])
        try:
            if channel is None:
                raise DeliveryFailed(f"this server has no channel for {due.target!r}", "dropped")
            response = channel(due)
        except DeliveryFailed as error:
            self._note_failure(due, error)
        except Exception as error:
            log.exception("a notification failed", extra={"fields": {"notification": due.id}})
            self._note_failure(due, DeliveryFailed(f"an error of the server: {type(error).__name__}"))
        else:
            self._outbox.end(due, "sent", self._clock(), response)
        return True

    def _note_failure(self, due: StoredNotification, error: DeliveryFailed) -> None:
        now_ms = self._clock()
        next_ms = now_ms + self._wait_ms(due.tries)
        about = {"fields": {"notification": due.id, "kind": due.kind, "tries": due.tries + 1}}
        if error.state != "pending":
            self._outbox.end(due, error.state, now_ms, error.response, str(error))
        elif next_ms > due.give_up_ms:
            log.warning("gave up a notification: %s", error, extra=about)
            self._outbox.end(due, "failed", now_ms, error.response, str(error))
        else:
            self._outbox.postpone(due, next_ms, error.response, str(error))

    def _wait_ms(self, tries: int) -> int:
        wait_ms = _RETRIES_MS[min(tries, len(_RETRIES_MS) - 1)]
        return int(wait_ms * (1 - _SPREAD + 2 * _SPREAD * self._chance()))
