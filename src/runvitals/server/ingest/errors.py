"""Why something is not taken in, as HTTP says it."""

from __future__ import annotations


class Refused(Exception):
    """A request of which nothing was stored.

    Args:
        status: of HTTP.
        text: what is wrong, where, and what is allowed.
        index: which envelope of a list is meant.
        retry_after_s: when it is worth trying again; None where it never is.
    """

    def __init__(
        self, status: int, text: str, index: int | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.index = index
        self.retry_after_s = retry_after_s


def malformed(text: str) -> Refused:
    """400: not what an envelope looks like."""
    return Refused(400, text)


def out_of_range(text: str) -> Refused:
    """422: it looks right, but a value is not allowed."""
    return Refused(422, text)


def too_large(text: str) -> Refused:
    """413."""
    return Refused(413, text)


def unavailable(text: str) -> Refused:
    """503: the fault is here."""
    return Refused(503, text, retry_after_s=5)


def overloaded(text: str) -> Refused:
    """429."""
    return Refused(429, text, retry_after_s=1)
