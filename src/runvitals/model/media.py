"""Media records: what a run logs besides numbers, and the files that it saves."""

from __future__ import annotations

from runvitals.model.limits import FILE_BYTES, ITEM_FILES, MEDIA_ITEMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

HISTOGRAM, IMAGE, AUDIO, VIDEO = "histogram", "image", "audio", "video"
HTML, TEXT, TABLE, FIGURE, FILE, ARTIFACT = "html", "text", "table", "figure", "file", "artifact"
OBJECT = "object3d"
KINDS = (HISTOGRAM, IMAGE, AUDIO, VIDEO, HTML, TEXT, TABLE, FIGURE, OBJECT, FILE, ARTIFACT)
"""The kinds that our writers write. `FILE`: saved by `run.save`; its name is the key of the record.
`ARTIFACT`: a part of an artifact that was logged, or the use of one; its name is the key."""
VALUE = "value"
"""The kind of texts, lists and objects that clients of other systems log: one item, `{"value": any JSON}`."""
NOT_LOGGED = (FILE, ARTIFACT)
"""Kinds that are not values of `run.log`."""
WITHOUT_PANEL = (*NOT_LOGGED, VALUE)
"""Kinds that are not media with a panel of their own."""
_HEX = frozenset("0123456789abcdef")
_TYPE_CHARACTERS = 100


def is_sha256(value: object) -> bool:
    """Return whether a value is a SHA-256 as 64 hexadecimal digits."""
    return isinstance(value, str) and len(value) == 64 and _HEX.issuperset(value)


def are_items(value: object) -> bool:
    """Return whether a value is the `items` of a MEDIA record."""
    return isinstance(value, list) and len(value) <= MEDIA_ITEMS and all(map(_is_item, value))


def _is_item(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    others = item.get("files")
    if others is not None and not (
        isinstance(others, list) and len(others) <= ITEM_FILES and all(map(_is_file, others))
    ):
        return False
    return item.get("sha256") is None or _is_file(item)


def _is_file(value: object) -> bool:
    if not isinstance(value, dict) or not is_sha256(value.get("sha256")):
        return False
    size, media_type = value.get("bytes"), value.get("type")
    return (
        isinstance(size, int)
        and not isinstance(size, bool)
        and 0 <= size <= FILE_BYTES
        and isinstance(media_type, str)
        and len(media_type) <= _TYPE_CHARACTERS
    )


def files_of(items: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the files that the items of a MEDIA record name: objects with `sha256`, `bytes` and `type`."""
    for item in items:
        if item.get("sha256") is not None:
            yield item
        yield from item.get("files") or ()
