"""Why a request was rejected, with its HTTP status."""

from __future__ import annotations

import traceback


class HttpRejection(Exception):
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


def malformed(text: str) -> HttpRejection:
    """400: not a valid envelope."""
    return HttpRejection(400, text)


def out_of_range(text: str) -> HttpRejection:
    """422: well-formed, but a value is not allowed."""
    return HttpRejection(422, text)


def too_large(text: str) -> HttpRejection:
    """413."""
    return HttpRejection(413, text)


def unavailable(text: str) -> HttpRejection:
    """503: the server has a problem; the request may be fine."""
    return HttpRejection(503, text, retry_after_s=5)


def overloaded(text: str) -> HttpRejection:
    """429."""
    return HttpRejection(429, text, retry_after_s=1)


def forget_locals(error: BaseException | None) -> None:
    """Free what the frames of an error hold, such as the body of its request.

    An error that comes out of a thread and the frame that waited for it refer to each other: without this,
    bodies of some sixty rejected requests, a gigabyte, stay until the garbage collector runs.
    """
    error_ids: set[int] = set()
    while error is not None and id(error) not in error_ids:
        error_ids.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
