"""Limits how many requests and bytes are in flight.

Beyond the limits clients are asked to retry later, so memory stays bounded.
"""

from __future__ import annotations

import sys

from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import forget_locals, overloaded


class Admission:
    """Counts the requests in flight. For use in the event loop's thread only.

    Attributes:
        requests, bytes: number of requests in flight, and the bytes that they reserved.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.requests = 0
        self.bytes = 0

    def admit(self) -> InFlightRequest:
        """Count a new request, or raise HttpRejection 429."""
        if self.requests >= self._limits.requests_in_flight:
            raise overloaded(f"{self.requests} requests are in flight already: try again later")
        self.requests += 1
        return InFlightRequest(self)

    def reserve(self, size: int) -> None:
        """Add to the bytes in flight, or raise HttpRejection 429."""
        if self.bytes + size > self._limits.bytes_in_flight:
            raise overloaded(f"requests of {self.bytes} bytes are in flight already: try again later")
        self.bytes += size


class InFlightRequest:
    """An admitted request, until `release`."""

    __slots__ = ("_admission", "_bytes")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._bytes = 0

    def reserve(self, size: int) -> None:
        """Raise the bytes reserved for this request to `size` if it is more, or raise HttpRejection 429."""
        if size > self._bytes:
            self._admission.reserve(size - self._bytes)
            self._bytes = size

    def release(self) -> None:
        """Count the request and its memory no longer. If an error ends it, that memory is freed."""
        forget_locals(sys.exc_info()[1])
        self._admission.requests -= 1
        self._admission.bytes -= self._bytes
