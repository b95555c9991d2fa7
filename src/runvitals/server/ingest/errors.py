"""Why a request was rejected, with its HTTP status."""

from __future__ import annotations


class RequestRejected(Exception):
    """The request is rejected, and nothing of it was stored.

    Args:
        status: HTTP status.
        text: what is wrong, where, and what is allowed.
        index: index of the invalid envelope in a list.
        retry_after_s: when to retry; None if the same request will never be accepted.
    """

    def __init__(
        self, status: int, text: str, index: int | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.index = index
        self.retry_after_s = retry_after_s


def malformed(text: str) -> RequestRejected:
    """400: not a valid envelope."""
    return RequestRejected(400, text)


def out_of_range(text: str) -> RequestRejected:
    """422: well-formed, but a value is not allowed."""
    return RequestRejected(422, text)


def too_large(text: str) -> RequestRejected:
    """413."""
    return RequestRejected(413, text)


def unavailable(text: str) -> RequestRejected:
    """503: the server has a problem; the request may be fine."""
    return RequestRejected(503, text, retry_after_s=5)


def overloaded(text: str) -> RequestRejected:
    """429."""
    return RequestRejected(429, text, retry_after_s=1)
