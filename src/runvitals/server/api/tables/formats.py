"""Which form of answer a request asks for: by `format`, else by `Accept`."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, HTTPException, Query

from runvitals.model.numbers import parse_number
from runvitals.server.api import models

Format = Literal["json", "csv", "arrow", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {media_type: {} for name, media_type in MEDIA_TYPES.items() if name != "json"}},
    406: {"model": models.ErrorAnswer, "description": "`Accept` allows none of the forms there are."},
    501: {"model": models.ErrorAnswer, "description": "Arrow and Parquet need pyarrow on the server."},
}
"""What the OpenAPI document says of a call that can be answered with a table."""


def wanted_format(
    format: Annotated[
        Format | None, Query(description="The form of the answer; goes before the `Accept` header.")
    ] = None,
    accept: Annotated[str, Header()] = "*/*",
) -> Format:
    """The form that a request asks for.

    Raises:
        HTTPException: 406 for an `Accept` that allows none, 501 for one that is not installed here.
    """
    found = format or accepted(accept)
    if found is None:
        allowed = ", ".join(MEDIA_TYPES.values())
        raise HTTPException(406, f"Accept {accept[:200]!r}: {allowed} can be had")
    if found in ("arrow", "parquet") and importlib.util.find_spec("pyarrow") is None:
        raise HTTPException(
            501,
            f"{found} needs pyarrow, which this server does not have: pip install 'runvitals[parquet]' "
            "there; json and csv can be had without",
        )
    return found


TheFormat = Annotated[Format, Depends(wanted_format)]


def accepted(header: str) -> Format | None:
    """The form that an `Accept` header likes best, of equals the first of ours; None: it allows none.

    Example:
        >>> accepted("text/html,*/*;q=0.8"), accepted("text/csv"), accepted("image/png")
        ('json', 'csv', None)
    """
    ranges = [_range(text) for text in header.split(",") if text.strip()]
    if not ranges:
        return "json"
    liked = {name: _liking(media_type, ranges) for name, media_type in MEDIA_TYPES.items()}
    best = max(liked, key=lambda name: liked[name])
    return best if liked[best] > 0 else None


def _range(text: str) -> tuple[str, float]:
    """A media range and how much it is liked, from 0 to 1."""
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            return name, parse_number(
                parameter[2:], 0.0, 1.0
            ) or 0.0  # no such number: as if it were not there
    return name, 1.0


def _liking(media_type: str, ranges: list[tuple[str, float]]) -> float:
    """What the most specific range that fits says of a media type; 0: none fits."""
    liking = dict(ranges)
    for one in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if one in liking:
            return liking[one]
    return 0.0
