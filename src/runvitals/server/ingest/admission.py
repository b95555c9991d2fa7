"""How much is let in at once: beyond it, clients are asked to retry later, and memory stays bounded."""

from __future__ import annotations

from runvitals.server.ingest.errors import overloaded
from runvitals.server.ingest.limits import Limits


class Admission:
    """Counts what is in flight. Used by one event loop's thread.

    Attributes:
        requests, bytes: that are in flight now.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.requests = 0
        self.bytes = 0

    def enter(self) -> Visit:
        """A request comes in.

        Raises:
            Refused: 429.
        """
        if self.requests >= self._limits.requests_in_flight:
            raise overloaded(f"{self.requests} requests are in flight already: try again later")
        self.requests += 1
        return Visit(self)

    def grow(self, by: int) -> None:
        if self.bytes + by > self._limits.bytes_in_flight:
            raise overloaded(f"requests of {self.bytes} bytes are in flight already: try again later")
        self.bytes += by


class Visit:
    """One request that is in flight, until `leave`."""

    __slots__ = ("_admission", "_bytes")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._bytes = 0

    def hold(self, size: int) -> None:
        """It holds so many bytes now, if that is more than before.

        Raises:
            Refused: 429.
        """
        if size > self._bytes:
            self._admission.grow(size - self._bytes)
            self._bytes = size

    def leave(self) -> None:
        self._admission.requests -= 1
        self._admission.bytes -= self._bytes
