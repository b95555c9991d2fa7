"""Media and other values in W&B's rows and configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runvitals.model import media
from runvitals.readers.importers.histograms import histogram
from runvitals.readers.importers.shapes import listed, mappings

_KINDS = {
    "image-file": media.IMAGE,
    "audio-file": media.AUDIO,
    "video-file": media.VIDEO,
    "html-file": media.HTML,
}
_GALLERIES = {
    "images/separated": media.IMAGE,
    "audio": media.AUDIO,
    "videos": media.VIDEO,
    "html": media.HTML,
}
_MAX_IN_GALLERY = 1000
Download = Callable[[str], bytes | None]
Store = Callable[[bytes], dict[str, Any]]


def media_items(
    data: dict[str, Any], download: Download, store: Store
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Take the media out of a row: name, kind and items of each. What cannot be read stays in the row.

    Args:
        data: the row, from which they are removed.
        download: returns the content of a file of the run, or None.
        store: stores a content; returns the fields of an item that name it.
    """
    for name in list(data):
        value = data[name]
        kind = str(value.get("_type")) if isinstance(value, dict) else None
        if kind == "histogram":
            items = _histogram(value)
            our_kind = media.HISTOGRAM
        elif kind in _KINDS:
            our_kind = _KINDS[kind]
            items = _files([value], our_kind, download, store)
        elif kind in _GALLERIES:
            our_kind = _GALLERIES[kind]
            items = _files(_singles(value), our_kind, download, store)
        else:
            continue
        if items:
            del data[name]
            yield name, our_kind, items


def _histogram(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    bars = histogram(value.get("values"), value.get("bins"))
    return [] if bars is None else [{"value": bars}]


def _singles(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the files of a gallery, with their captions."""
    files = mappings(value.get("audio")) or mappings(value.get("videos"))
    names = listed(value.get("filenames")) or [each.get("path") for each in files]
    texts = listed(value.get("captions"))
    pairs = enumerate(names[:_MAX_IN_GALLERY])
    return [{"path": name, "caption": texts[at] if at < len(texts) else None} for at, name in pairs]


def _files(
    values: list[Mapping[str, Any]], kind: str, download: Download, store: Store
) -> list[dict[str, Any]]:
    items = []
    for value in values:
        content = download(str(value.get("path")))
        if content is None:
            continue
        item = store(content)
        if kind == media.HTML:
            item["type"] = "text/html"
        if value.get("caption"):
            item["caption"] = str(value["caption"])
        for side in ("width", "height"):
            if isinstance(value.get(side), int):
                item[side] = value[side]
        items.append(item)
    return items


def without_internals(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration or summary without W&B's own entries, and with `{"value": …}` unwrapped."""
    return {key: _unwrap(value) for key, value in values.items() if not key.startswith("_")}


def _unwrap(value: Any) -> Any:
    is_wrapped = isinstance(value, dict) and "value" in value and value.keys() <= {"value", "desc"}
    return value["value"] if is_wrapped else value
