"""Delivery without a relay: sends the remaining records of a run from the calling process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from runvitals.journal import paths
from runvitals.relay.destination import Gone, Retry, Unauthorized
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import DELIVERED, RunDelivery, is_over
from runvitals.relay.engine.delivery_thread import backoff
from runvitals.relay.engine.destination_spec import DestinationSpec

# Waits of 1 + 2 + 4 + 8 s, plus up to half of each.
TRIES = 5
MAX_WAIT_S = 120.0
"""A server that asks to come back later than this is not waited for."""


def hosts_of_run(folder: str) -> list[str]:
    """Return the hosts that wrote to a run, as they appear in writer names."""
    return sorted({paths.role_and_host(writer)[1] for writer in paths.segments(folder)})


def deliver_remaining(
    cursor: Cursor,
    sleep: Callable[[float], None],
    tries: int = TRIES,
    environ: Mapping[str, str] = os.environ,
    waiting: Callable[[Exception, float], None] = lambda error, wait_s: None,
) -> None:
    """Deliver the remaining records of a run's writers on one host.

    Args:
        cursor: the position of the delivery.
        sleep: called with the seconds to wait between two attempts.
        tries: how many attempts in a row may fail.
        environ: the environment the destination reads its credentials from.
        waiting: called before each wait with the failure and the seconds.

    Raises:
        BlockingIOError: another process, probably a relay, is delivering it.
        Gone: the destination accepts no more data of the run; this is saved.
        Retry, OSError: the destination is unavailable. The position is saved if something may have arrived.
        ValueError, ImportError: the destination could not be created.

    A delivery that failed is left to the next call: no relay continues it, unless one has begun it.
    """
    if not cursor.lock():
        raise BlockingIOError("another process is delivering this run")
    try:
        cursor.closed = ""
        cursor.by_hand = cursor.by_hand or not os.path.exists(cursor.path)
        delivery = RunDelivery(cursor, environ=environ)
        try:
            _deliver_all(delivery, sleep, tries, waiting)
            delivery.close()
        except Gone as error:
            delivery.finish(f"no longer wanted: {error}")
            raise
        except Exception as error:
            cursor.error = str(error)
            if cursor.by_hand and not cursor.has_begun:
                cursor.delete()
            else:
                cursor.save()
            raise
        finally:
            delivery.close()
        if cursor.by_hand:
            cursor.by_hand = False
            cursor.save()
        if is_over(cursor.folder, cursor.host) and not cursor.held:
            delivery.finish(DELIVERED)
    finally:
        cursor.unlock()


def _deliver_all(
    delivery: RunDelivery,
    sleep: Callable[[float], None],
    tries: int,
    waiting: Callable[[Exception, float], None],
) -> None:
    delays = backoff()
    while True:
        try:
            if not delivery.step(0.0, flush=True):
                return
        except (Retry, OSError) as error:
            wait_s = delays.note_failure(0.0, error.after_s if isinstance(error, Retry) else None)
            if delays.failures >= tries or isinstance(error, Unauthorized) or wait_s > MAX_WAIT_S:
                raise
            waiting(error, wait_s)
            sleep(wait_s)
        else:
            delays.note_success()


def cursor_for(folder: str, destination: str, host: str, cwd: str) -> Cursor:
    """Return the cursor of a host's part of a run.

    `cwd` is the base of relative paths if the cursor is new.
    """
    cursor = Cursor(folder, DestinationSpec(destination), host)
    cursor.cwd = cursor.cwd or cwd
    cursor.python = cursor.python or sys.executable
    return cursor
