"""The routes of remote write."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from runvitals.server.access.permission import needs
from runvitals.server.doors.remote_write.receiver import WriteStatistics
from runvitals.server.error_table import CLIENT_LEFT, meaning_of
from runvitals.server.http.request_body import ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.services import shared_services_of

PATHS: Final = ("/api/v1/write", "/prometheus/api/v1/write")
_PERMANENT: Final = frozenset((413, 422))
"""Statuses that VictoriaMetrics' agent would retry for ever."""


router: Final = Router(include_in_schema=False)
"""Comes before all others: finding the last of them takes longer than storing 500 samples."""


# The message names the runs: what the key may send is checked when they are stored.
@router.post(PATHS[0], needs("authenticated"))
@router.post(PATHS[1], needs("authenticated"))
async def write(request: Request) -> Response:
    """Store samples. What it rejects for good is 400, which senders do not repeat."""
    receiver = shared_services_of(request).remote_write()
    try:
        return _response(await receiver.receive(request))
    except (HttpRejection, ClientDisconnected) as error:
        return _error_response(error)


def _response(statistics: WriteStatistics) -> Response:
    headers = _written(statistics.samples, statistics.histograms)
    if statistics.problems:
        return PlainTextResponse(f"the others were stored, but {statistics.problems}\n", 400, headers)
    return Response(status_code=204, headers=headers)


def _written(samples: int = 0, histograms: int = 0) -> dict[str, str]:
    """Return headers that say what was stored: without them, a sender of 2.0 assumes a receiver of 1.0."""
    counts = {"Samples": samples, "Histograms": histograms, "Exemplars": 0}
    return {f"X-Prometheus-Remote-Write-{kind}-Written": str(count) for kind, count in counts.items()}


def _error_response(error: Exception) -> Response:
    """Return what the error means, as plain text."""
    meaning = meaning_of(error)
    if meaning.status == CLIENT_LEFT:
        return Response(status_code=CLIENT_LEFT)
    status = 400 if meaning.status in _PERMANENT else meaning.status
    headers = {**_written(), **meaning.headers}
    if status == 408:  # the rest of the body may still arrive, where the next request would begin
        headers["connection"] = "close"
    return PlainTextResponse(meaning.text + "\n", status, headers)
