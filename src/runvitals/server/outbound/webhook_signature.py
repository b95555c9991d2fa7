"""The headers by which a receiver knows that a request to its webhook is ours, and new."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

VERSION: Final = "v1"


def signed_headers(body: bytes, secret: str | None, time_s: int, delivery: str) -> dict[str, str]:
    """The headers of a request with this body.

    The receiver computes the HMAC of `timestamp + "." + body`, and rejects old timestamps.

    Args:
        secret: which the receiver knows too; None: the request is not signed.
        delivery: the same when the request is repeated.

    Example:
        >>> sorted(signed_headers(b"{}", "secret", 0, "1"))
        ['X-Runvitals-Delivery', 'X-Runvitals-Signature', 'X-Runvitals-Timestamp']
    """
    headers = {"X-Runvitals-Timestamp": str(time_s), "X-Runvitals-Delivery": delivery}
    if secret is not None:
        signed = hmac.new(secret.encode(), f"{time_s}.".encode() + body, hashlib.sha256)
        headers["X-Runvitals-Signature"] = f"{VERSION}={signed.hexdigest()}"
    return headers


def wandb_signature(body: bytes, secret: str) -> str:
    """The header `X-Wandb-Signature`, for receivers that were written for W&B."""
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode("ascii")
