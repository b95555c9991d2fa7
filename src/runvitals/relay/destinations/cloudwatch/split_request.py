"""Sends a request in ever smaller parts where CloudWatch refuses it, so that only what it refuses is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runvitals.relay.destinations.cloudwatch.datum import Datum

# After so many refused readings of a datum of which none was accepted, the rest is not tried: each request
# costs money, and a datum of which the name or the time is refused has up to 150 values.
_TRIALS = 2
_MAX_REASONS = 20


class ServiceUnavailable(Exception):
    """Throttled, no network, or no credentials. The data are kept and sent later."""


class RequestRejected(Exception):
    """CloudWatch rejected the request permanently."""


class RefusedReadings:
    """The number of readings that were not accepted, by reason. Only the first reasons are kept apart.

    Args:
        counts: where they are kept.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def add(self, reason: str, readings: int) -> None:
        """Count readings that were refused for a reason."""
        is_counted = reason in self.counts or len(self.counts) < _MAX_REASONS
        reason = reason if is_counted else "other reasons"
        if readings:
            self.counts[reason] = self.counts.get(reason, 0) + readings

    @property
    def readings(self) -> int:
        """The number of readings that were refused."""
        return sum(self.counts.values())

    def texts(self) -> list[str]:
        """Return a line for each reason, for the user."""
        return [f"{count} readings: {reason}" for reason, count in self.counts.items()]


class SplitRequest:
    """A request, of which the parts that wait are sent one at a time.

    Args:
        data: of the whole request.
        put: sends a part, or raises `ServiceUnavailable` or `RequestRejected`.
        refusals: where refused readings are counted.
    """

    def __init__(
        self, data: Sequence[Datum], put: Callable[[Sequence[Datum]], None], refusals: RefusedReadings
    ) -> None:
        self.size = len(data)
        self._put = put
        self._refusals = refusals
        self._parts = [data] if data else []  # the last is the next
        # The datum that is tried by its values, how many of them were refused, and whether one was accepted.
        self._tried: Datum | None = None
        self._refused = 0
        self._accepted = False

    def __bool__(self) -> bool:
        """Return whether something is left to be sent."""
        return bool(self._parts)

    @property
    def readings(self) -> int:
        """The number of readings that wait."""
        return sum(datum.readings for part in self._parts for datum in part)

    def send_part(self) -> int:
        """Send the next part; returns how many readings were accepted.

        Raises:
            ServiceUnavailable: the part still waits.
        """
        part = self._parts[-1]
        try:
            self._put(part)
        except RequestRejected as error:
            self._parts.pop()
            self._divide(part, str(error))
            return 0
        self._parts.pop()
        self._accepted = self._accepted or self._is_tried(part[0])
        return sum(datum.readings for datum in part)

    def _divide(self, part: Sequence[Datum], reason: str) -> None:
        if len(part) > 1:
            middle = len(part) // 2
            self._parts += [part[middle:], part[:middle]]
            return
        (datum,) = part
        if len(datum.values) > 1 and not self._is_hopeless(datum):
            if not self._is_tried(datum):
                self._tried, self._refused, self._accepted = datum, 0, False
            self._parts += [[half] for half in reversed(halves(datum))]
            return
        self._refuse(datum, reason)
        self._refused += 1
        while self._parts and len(self._parts[-1]) == 1 and self._is_hopeless(self._parts[-1][0]):
            self._refuse(self._parts.pop()[0], reason)

    def _is_hopeless(self, datum: Datum) -> bool:
        return self._is_tried(datum) and self._refused >= _TRIALS and not self._accepted

    def _is_tried(self, datum: Datum) -> bool:
        tried = self._tried
        return tried is not None and (tried.series, tried.time_s) == (datum.series, datum.time_s)

    def _refuse(self, datum: Datum, reason: str) -> None:
        self._refusals.add(f"{datum.series.name}: {reason}", datum.readings)


def halves(datum: Datum) -> tuple[Datum, Datum]:
    """Return a datum as two, with half of its values each."""
    middle = len(datum.values) // 2
    first, second = slice(middle), slice(middle, None)
    return (
        datum._replace(values=datum.values[first], counts=datum.counts[first]),
        datum._replace(values=datum.values[second], counts=datum.counts[second]),
    )
