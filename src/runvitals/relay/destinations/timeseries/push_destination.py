"""The base class of destinations that push series over HTTP: remote write and OTLP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination, Rejected, Retry
from runvitals.relay.destinations.timeseries.batch_series import BatchSeries, SeriesPoints, cut
from runvitals.relay.destinations.timeseries.naming import Namer
from runvitals.relay.engine.http_client import HttpClient, HttpResponse

MOST_SAMPLES = 10_000
_REFUSED = frozenset({400, 409, 413, 415, 422})
_TOO_LARGE = 413


class RejectedPoints(NamedTuple):
    """Values that the server rejected permanently."""

    points: int
    text: str


class PushingDestination(Destination):
    """Sends batches as series, in one or more requests each. Requests that were answered are counted in the
    state and not sent again.

    Args:
        context: its state keeps what is needed to resume.
        web, path: the server and the path of requests.
        naming: how keys are named at the destination.
        credentials: where the credentials are configured, shown to the user.
    """

    prompt = False

    def __init__(
        self, context: Context, web: HttpClient, path: str, naming: type[Namer], credentials: str
    ) -> None:
        self.web, self.path = web, path
        self._credentials = credentials
        self._state = context.state
        self._timeline = BatchSeries(context.state, naming)

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
        for number, request in enumerate(cut(self._timeline.lines(batch), MOST_SAMPLES)):
            if number >= arrived:
                problems += [one for one in self._send(batch, request) if not self.is_there(batch, one.text)]
                self._state["arrived"] = number + 1
        self._state["sending"], self._state["arrived"] = None, 0
        self._timeline.keep(batch)
        if problems:
            texts = dict.fromkeys(one.text for one in problems)
            raise Rejected("; ".join(texts), sum(one.points for one in problems))

    def close(self) -> None:
        self.web.close()

    # -- implemented by the destinations

    @abstractmethod
    def post(self, batch: Batch, lines: Sequence[SeriesPoints]) -> HttpResponse:
        """Send some of a batch's series."""

    def complaints(self, answer: HttpResponse) -> list[RejectedPoints]:
        """Values that the server dropped although it accepted the request."""
        return []

    def is_there(self, batch: Batch, refusal: str) -> bool:
        """Whether a request was rejected because its data had arrived before."""
        return False

    # -- the rest

    def _send(self, batch: Batch, lines: Sequence[SeriesPoints]) -> list[RejectedPoints]:
        """Send some series; returns what the server rejected."""
        answer = self.post(batch, lines)
        if answer.status == _TOO_LARGE and len(lines) > 1:
            middle = len(lines) // 2
            return self._send(batch, lines[:middle]) + self._send(batch, lines[middle:])
        if answer.status in _REFUSED:
            points = sum(len(line.times_ms) for line in lines)
            return [RejectedPoints(points, f"{answer.status} {answer.text()}".strip())]
        if not 200 <= answer.status < 300:
            raise Retry(self._why(answer), answer.retry_after_s)
        return self.complaints(answer)

    def _why(self, answer: HttpResponse) -> str:
        where = f"{self.web.url}{self.path}"
        if answer.status in (401, 403):
            return f"{where} rejected the credentials ({answer.status}); {self._credentials}"
        return f"{where}: {answer.status} {answer.text()}".strip()
