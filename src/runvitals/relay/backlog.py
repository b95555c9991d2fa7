"""Delivery without a relay: what is left of a run, now, by the process that asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from runvitals.journal import paths
from runvitals.relay.courier import backoff
from runvitals.relay.cursor import Cursor
from runvitals.relay.delivery import DELIVERED, RunDelivery, is_over
from runvitals.relay.destination import Gone, Retry, Unauthorized
from runvitals.relay.specs import DestinationSpec

# 1 + 2 + 4 + 8 s, and up to a half more.
TRIES = 5


def hosts(folder: str) -> list[str]:
    """The hosts that wrote to a run, as writers' names have them."""
    return sorted({paths.role_and_host(writer)[1] for writer in paths.segments(folder)})


def deliver_rest(
    cursor: Cursor,
    sleep: Callable[[float], None],
    tries: int = TRIES,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Deliver all there is of one host's part of a run. What was delivered before is not sent again.

    Args:
        cursor: how far it is.
        sleep: waits between two tries, in seconds.
        tries: in a row that may fail.
        environ: what the destination finds its credentials in.

    Raises:
        BlockingIOError: another process, a relay most likely, is at it.
        Gone: the far side wants no more of it; that is remembered.
        Retry, OSError: the far side is not there. The position is kept.
        ValueError, ImportError: there can be no such destination.
    """
    if not cursor.lock():
        raise BlockingIOError("another process is delivering it just now")
    try:
        cursor.closed = ""
        delivery = RunDelivery(cursor, environ=environ)
        try:
            _all_of(delivery, sleep, tries)
            delivery.close()
        except Gone as error:
            delivery.finish(f"not wanted any more: {error}")
            raise
        except Exception as error:
            cursor.error = str(error)
            cursor.save()
            raise
        finally:
            delivery.close()
        if is_over(cursor.folder, cursor.host) and not cursor.held:
            delivery.finish(DELIVERED)
    finally:
        cursor.unlock()


def _all_of(delivery: RunDelivery, sleep: Callable[[float], None], tries: int) -> None:
    waits = backoff()
    while True:
        try:
            if not delivery.step(0.0, flush=True):
                return
        except (Retry, OSError) as error:
            wait_s = waits.failed(0.0, error.after_s if isinstance(error, Retry) else None)
            if waits.failures >= tries or isinstance(error, Unauthorized):
                raise
            sleep(wait_s)
        else:
            waits.worked()


def cursor_for(folder: str, destination: str, host: str, cwd: str) -> Cursor:
    """The position of a host's part of a run; `cwd` is what a new one's relative paths are relative to."""
    cursor = Cursor(folder, DestinationSpec(destination), host)
    cursor.cwd = cursor.cwd or cwd
    return cursor
