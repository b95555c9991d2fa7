"""How answers are written: JSON with null for what is no number, long ones compressed off the event loop."""

from __future__ import annotations

import gzip
from collections.abc import Collection
from itertools import islice
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

_PACK_FROM = 2000
_MOST_TOLD = 10


def json_bytes(value: Any) -> bytes:
    """A value as JSON; NaN and infinities, which JSON does not have, are null."""
    return to_json(value, inf_nan_mode="null", fallback=str)


async def answer(request: Request, body: bytes) -> Response:
    """A JSON text as an answer that is not cached. A long one is compressed in a thread: 1 MB takes 8 ms."""
    headers = {"cache-control": "no-store"}
    if len(body) >= _PACK_FROM and "gzip" in request.headers.get("accept-encoding", ""):
        body = await run_in_threadpool(gzip.compress, body, 1)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(body, media_type="application/json", headers=headers)


def problem_headers(problems: Collection[str]) -> dict[str, str]:
    """What could not be read, for an answer that has no room to say so."""
    if not problems:
        return {}
    more = f"; and {len(problems) - _MOST_TOLD} more" if len(problems) > _MOST_TOLD else ""
    told = "; ".join(islice(problems, _MOST_TOLD)) + more
    return {"runvitals-problems": "".join(c if " " <= c <= "~" else "?" for c in told)}
