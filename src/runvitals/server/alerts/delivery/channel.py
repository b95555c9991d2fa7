"""Parts that all channels share: the error of a delivery, posts over HTTP, titles and links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from runvitals.server.events.outbox import ChannelResponse, StoredNotification
from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked

Channel = Callable[[StoredNotification], ChannelResponse]
"""Delivers a notification, or raises `DeliveryFailed`."""

_MAX_SHOWN: Final = 2048


class DeliveryFailed(Exception):
    """A notification did not arrive; the text says why.

    Attributes:
        state: pending: try again later. failed: it would fail again. dropped: there is no such channel here.
        response: what the receiver answered; None: nothing.
    """

    def __init__(
        self,
        text: str,
        state: Literal["pending", "failed", "dropped"] = "pending",
        response: ChannelResponse | None = None,
    ) -> None:
        super().__init__(text)
        self.state = state
        self.response = response


def post(fetcher: Fetcher, url: str, body: bytes, headers: Mapping[str, str]) -> ChannelResponse:
    """Post to a receiver, and return its response, whatever the status.

    Raises:
        DeliveryFailed: there was no response, or no request may be sent there.
    """
    try:
        response = fetcher.post(url, body, headers)
    except (Blocked, FetchFailed) as error:
        raise DeliveryFailed(str(error)) from None
    return ChannelResponse(response.status, response.body[:_MAX_SHOWN].decode("utf-8", "replace"))


def check_accepted(response: ChannelResponse) -> ChannelResponse:
    """Return the response if it says that the receiver accepted the message.

    Raises:
        DeliveryFailed: the receiver did not accept it; for good if it says that it is gone.
    """
    status = response.status or 0
    if not 200 <= status < 300:
        raise DeliveryFailed(
            f"the receiver answered {status}; expected 200",
            "failed" if status == 410 else "pending",
            response,
        )
    return response


def title_of(text: str) -> tuple[str, str]:
    """Return the title of a notification, and what follows it."""
    title, _, rest = text.partition("\n")
    return title.strip(), rest.strip("\n")


def number_of(due: StoredNotification) -> int:
    """Return the id in the target of a notification."""
    return int(due.target.partition(":")[2])


def link_of(due: StoredNotification, server_url: str | None) -> str | None:
    """Return where the link of a notification leads.

    None if it has none, or nobody has set the server's address.
    """
    path: Any = due.payload.get("path")
    if server_url is None or not isinstance(path, str) or not path.startswith("/"):
        return None
    return server_url.rstrip("/") + path
