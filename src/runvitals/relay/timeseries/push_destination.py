"""The base class of destinations that push series over HTTP: remote write and OTLP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination, Rejected, Retry
from runvitals.relay.timeseries.batch_series import BatchSeries, SeriesPoints, cut
from runvitals.relay.timeseries.naming import Namer

MAX_SAMPLES = 10_000
_REJECTED = frozenset({400, 409, 413, 415, 422})
_TOO_LARGE = 413


class RejectedPoints(NamedTuple):
    """Values that the server rejected permanently."""

    points: int
    text: str


class PushingDestination(Destination):
    """Sends batches as series, in one or more requests each.

    Requests that were answered are counted in the state and not sent again.

    Args:
        context: its state keeps what is needed to resume.
        http, path: the client of the server and the path of requests.
        naming: how keys are named at the destination.
        credentials: where the credentials are configured, shown to the user.
    """

    prompt = False

    def __init__(
        self, context: Context, http: HttpClient, path: str, naming: type[Namer], credentials: str
    ) -> None:
        self.http, self.path = http, path
        self._credentials = credentials
        self._state = context.state
        self._series = BatchSeries(context.state, naming)

    def deliver(self, batch: Batch) -> None:
        """Send one batch.

        Raises:
            Retry: the server is unavailable or rejected the credentials.
            Rejected: the server rejected some of it permanently; the rest was sent.
        """
        key = [batch.writer.name, batch.first_seq]
        arrived = self._state["arrived"] if self._state.get("sending") == key else 0
        self._state["sending"], self._state["arrived"] = key, arrived
        problems: list[RejectedPoints] = []
        for number, request in enumerate(cut(self._series.lines(batch), MAX_SAMPLES)):
            if number >= arrived:
                problems += [
                    rejected
                    for rejected in self._send(batch, request)
                    if not self.was_stored(batch, rejected.text)
                ]
                self._state["arrived"] = number + 1
        self._state["sending"], self._state["arrived"] = None, 0
        self._series.advance(batch)
        if problems:
            texts = dict.fromkeys(rejected.text for rejected in problems)
            raise Rejected("; ".join(texts), sum(rejected.points for rejected in problems))

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    # -- implemented by the destinations

    @abstractmethod
    def post(self, batch: Batch, lines: Sequence[SeriesPoints]) -> ServerResponse:
        """Send some of a batch's series."""

    def partial_rejections(self, response: ServerResponse) -> list[RejectedPoints]:
        """Return values that the server dropped although it accepted the request."""
        return []

    def was_stored(self, batch: Batch, error: str) -> bool:
        """Return whether a request was rejected because its data had arrived before."""
        return False

    # -- sending

    def _send(self, batch: Batch, lines: Sequence[SeriesPoints]) -> list[RejectedPoints]:
        """Send some series; returns what the server rejected."""
        response = self.post(batch, lines)
        if response.status == _TOO_LARGE and len(lines) > 1:
            middle = len(lines) // 2
            return self._send(batch, lines[:middle]) + self._send(batch, lines[middle:])
        if response.status in _REJECTED:
            points = sum(len(line.times_ms) for line in lines)
            return [RejectedPoints(points, f"{response.status} {response.text()}".strip())]
        if not 200 <= response.status < 300:
            raise Retry(self._error_text(response), response.retry_after_s)
        return self.partial_rejections(response)

    def _error_text(self, response: ServerResponse) -> str:
        url = f"{self.http.url}{self.path}"
        if response.status in (401, 403):
            return f"{url} rejected the credentials ({response.status}); {self._credentials}"
        return f"{url}: {response.status} {response.text()}".strip()
