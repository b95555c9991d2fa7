"""The id of a request, in the header `X-Request-Id` of its response."""

from __future__ import annotations

import secrets
from typing import Final

HEADER: Final = "x-request-id"
_BYTES: Final = 8


def new_request_id() -> str:
    """An id that no other request has."""
    return secrets.token_hex(_BYTES)
