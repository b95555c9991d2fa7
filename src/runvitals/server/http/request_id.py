"""The id of a request, in the header `X-Request-Id` of its response."""

from __future__ import annotations

import random
from typing import Final

HEADER: Final = "x-request-id"
_BITS: Final = 64
_random_bits = random.Random().getrandbits  # seeded by the system, which each id would ask otherwise


def new_request_id() -> str:
    """An id that no other request has. It is no secret."""
    return f"{_random_bits(_BITS):016x}"
