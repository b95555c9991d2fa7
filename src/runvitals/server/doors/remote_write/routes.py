"""The routes of remote write."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from runvitals.server.access.permission import needs
from runvitals.server.doors.remote_write.receiver import WriteStatistics
from runvitals.server.http.request_body import ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.services import shared_services_of

PATHS: Final = ("/api/v1/write", "/prometheus/api/v1/write")
_WRITTEN: Final = "X-Prometheus-Remote-Write-{}-Written"
_PERMANENT: Final = frozenset((413, 422))
"""Statuses that VictoriaMetrics' agent would retry for ever."""


router: Final = Router(include_in_schema=False)
"""Comes before all others: finding the last of them takes longer than storing 500 samples."""


# The message names the runs: what the key may send is checked when they are stored.
@router.post(PATHS[0], dependencies=[needs("authenticated")])
@router.post(PATHS[1], dependencies=[needs("authenticated")])
async def write(request: Request) -> Response:
    """Store samples. What it rejects for good is 400, which senders do not repeat."""
    receiver = shared_services_of(request).remote_write
    try:
        return _answer(await receiver.receive(request))
    except HttpRejection as error:
        status = 400 if error.status in _PERMANENT else error.status
        headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
        if error.status == 408:  # the rest of the body may still arrive, where the next request would begin
            headers["Connection"] = "close"
        return PlainTextResponse(error.text + "\n", status, headers)
    except ClientDisconnected:
        return Response(status_code=499)


def _answer(found: WriteStatistics) -> Response:
    headers = {
        _WRITTEN.format("Samples"): str(found.samples),
        _WRITTEN.format("Histograms"): str(found.histograms),
        _WRITTEN.format("Exemplars"): "0",
    }
    if found.problems:
        return PlainTextResponse(f"the others were stored, but {found.problems}\n", 400, headers)
    return Response(status_code=204, headers=headers)
