"""The format of a response, from `format` or the `Accept` header."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, HTTPException, Query

from runvitals.base.numbers import parse_number
from runvitals.server.http.bodies import ErrorAnswer

Format = Literal["json", "csv", "arrow", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {media_type: {} for name, media_type in MEDIA_TYPES.items() if name != "json"}},
    406: {"model": ErrorAnswer, "description": "`Accept` allows none of the supported formats."},
    501: {"model": ErrorAnswer, "description": "Arrow and Parquet need pyarrow on the server."},
}
"""For the OpenAPI document: responses of routes that can return a table."""


def wanted_format(
    format: Annotated[
        Format | None, Query(description="Format of the response; overrides the `Accept` header.")
    ] = None,
    accept: Annotated[str, Header()] = "*/*",
) -> Format:
    """Return the format that a request selects.

    Raises:
        HTTPException: 406 if `Accept` allows no supported format, 501 if pyarrow is missing.
    """
    selected = format or accepted_format(accept)
    if selected is None:
        allowed = ", ".join(MEDIA_TYPES.values())
        raise HTTPException(
            406, f"Accept {accept[:200]!r} allows no supported format; expected one of {allowed}"
        )
    if selected in ("arrow", "parquet") and importlib.util.find_spec("pyarrow") is None:
        raise HTTPException(
            501,
            f"{selected} needs pyarrow on the server: pip install 'runvitals[parquet]'; json and csv work "
            "without it",
        )
    return selected


TheFormat = Annotated[Format, Depends(wanted_format)]


def accepted_format(header: str) -> Format | None:
    """Return the format that an `Accept` header prefers.

    Among equals it is the first of ours. None if it allows none.

    Example:
        >>> accepted_format("text/html,*/*;q=0.8"), accepted_format("text/csv"), accepted_format("image/png")
        ('json', 'csv', None)
    """
    ranges = [_range(text) for text in header.split(",") if text.strip()]
    if not ranges:
        return "json"
    quality = {name: _quality(media_type, ranges) for name, media_type in MEDIA_TYPES.items()}
    best = max(quality, key=lambda name: quality[name])
    return best if quality[best] > 0 else None


def _range(text: str) -> tuple[str, float]:
    """Return a media range and its quality, from 0 to 1."""
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            return name, parse_number(parameter[2:], 0.0, 1.0) or 0.0  # an invalid quality counts as 0
    return name, 1.0


def _quality(media_type: str, ranges: list[tuple[str, float]]) -> float:
    """Return the quality of a media type by the most specific range that matches; 0 if none does."""
    qualities = dict(ranges)
    for media_range in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if media_range in qualities:
            return qualities[media_range]
    return 0.0
