"""Images, tables, histograms and so on in the rows of clients, as media of ours."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from runvitals.model import media
from runvitals.model.limits import FILE_BYTES, MEDIA_ITEMS, NAME_CHARACTERS
from runvitals.model.media import is_sha256

_KINDS: Final[Mapping[str, str]] = {
    "image-file": media.IMAGE,
    "audio-file": media.AUDIO,
    "video-file": media.VIDEO,
    "html-file": media.HTML,
    "table-file": media.TABLE,
    "partitioned-table": media.FILE,
    "joined-table": media.FILE,
    "plotly-file": media.FILE,
    "bokeh-file": media.FILE,
    "object3D-file": media.FILE,
    "molecule-file": media.FILE,
}
"""By the type of one medium. What the page cannot draw can be downloaded."""
_LISTS: Final[Mapping[str, str]] = {"audio": "audio", "videos": "videos", "html": "html"}
"""By the type of a list, the field that has its media."""
_MIME: Final[Mapping[str, str]] = {
    media.AUDIO: "audio/wav",
    media.VIDEO: "video/mp4",
    media.HTML: "text/html",
    media.FILE: "application/octet-stream",
}
_OVERLAYS: Final[Mapping[str, str]] = {"boxes": "boxes2D", "masks": "mask"}
"""What is shown over an image: its field, and the type of the files in it."""
_MAX_OVERLAYS: Final = 100
_CAPTION_CHARACTERS: Final = 10_000
_MAX_BINS: Final = 512
Item = dict[str, Any]


def media_record(value: object) -> tuple[str, list[Item]] | None:
    """Return the kind and the items of a value that was logged; None if it is no medium.

    Example:
        >>> media_record({"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]})
        ('histogram', [{'value': {'counts': [1, 2], 'edges': [0, 1, 2], 'count': 3}}])
    """
    if isinstance(value, list):
        items = [item for element in value[:MEDIA_ITEMS] if (item := media_item(element)) is not None]
        return (items[0]["kind"], items) if items else None
    if not isinstance(value, dict):
        return None
    name = value.get("_type")
    if name == "histogram":
        histogram = _histogram(value)
        return None if histogram is None else (media.HISTOGRAM, [{"value": histogram}])
    if name == "images/separated":
        return media.IMAGE, _separated_images(value)
    if isinstance(name, str) and name in _LISTS:
        return media_record(_with_captions(value.get(_LISTS[name]), value.get("captions")))
    first = media_item(value)
    return None if first is None else (first["kind"], [first])


def media_item(value: object) -> Item | None:
    """Return one medium as an item; None if it is none.

    One without SHA-256 has that of the saved file `file`.
    """
    if not isinstance(value, dict) or value.get("_type") not in _KINDS:
        return None
    kind = _KINDS[value["_type"]]
    item: Item = {"kind": kind}
    path, size, sha256 = value.get("path"), value.get("size"), value.get("sha256")
    if isinstance(path, str):
        item["file"] = path[:NAME_CHARACTERS]
    if kind != media.TABLE and is_sha256(sha256) and isinstance(size, int) and 0 <= size <= FILE_BYTES:
        image_type = f"image/{value.get('format', 'png')}"
        item |= {"sha256": sha256, "bytes": size, "type": _MIME.get(kind, image_type)[:100]}
    for name in ("width", "height"):
        if isinstance(value.get(name), int):
            item[name] = value[name]
    if isinstance(value.get("caption"), str):
        item["caption"] = value["caption"][:_CAPTION_CHARACTERS]
    if kind == media.IMAGE and (overlays := _overlays(value)):
        item["overlays"] = overlays
    return item if "file" in item or "sha256" in item else None


def _overlays(image: Mapping[str, Any]) -> list[Item]:
    """Return the boxes and masks of an image: their names, and the SHA-256 of their files."""
    overlays = []
    for field, of_type in _OVERLAYS.items():
        sets = image.get(field)
        for name, file in sets.items() if isinstance(sets, dict) else ():
            if isinstance(file, dict) and file.get("_type") == of_type and is_sha256(file.get("sha256")):
                overlays.append({"kind": field, "name": name[:NAME_CHARACTERS], "sha256": file["sha256"]})
    return overlays[:_MAX_OVERLAYS]


def _separated_images(value: Mapping[str, Any]) -> list[Item]:
    names = value.get("filenames")
    sizes = {name: value[name] for name in ("width", "height") if isinstance(value.get(name), int)}
    images: list[dict[str, Any]] = [
        {"_type": "image-file", "path": name, **sizes} for name in (names if isinstance(names, list) else ())
    ]
    for field in _OVERLAYS:
        of_images = value.get(f"all_{field}")
        for image, sets in zip(images, of_images if isinstance(of_images, list) else (), strict=False):
            image[field] = sets
    captioned = _with_captions(images, value.get("captions"))[:MEDIA_ITEMS]
    return [item for image in captioned if (item := media_item(image)) is not None]


def _with_captions(values: object, captions: object) -> list[Any]:
    listed = values if isinstance(values, list) else []
    if not isinstance(captions, list):
        return listed
    texts = [*captions[: len(listed)], *[None] * (len(listed) - len(captions))]
    return [
        {**image, "caption": text} if isinstance(image, dict) and text else image
        for image, text in zip(listed, texts, strict=True)
    ]


def _histogram(value: Mapping[str, Any]) -> dict[str, Any] | None:
    counts, edges = value.get("values"), value.get("bins")
    packed = value.get("packedBins")
    if edges is None and isinstance(packed, dict) and isinstance(counts, list):
        least, width = packed.get("min"), packed.get("size")
        if isinstance(least, (int, float)) and isinstance(width, (int, float)):
            edges = [least + width * index for index in range(len(counts) + 1)]
    if not isinstance(counts, list) or not isinstance(edges, list) or len(edges) != len(counts) + 1:
        return None
    if len(counts) > _MAX_BINS or not all(map(_is_finite, (*counts, *edges))):
        return None
    if min(counts, default=0) < 0 or any(low > high for low, high in pairwise(edges)):
        return None
    return {"counts": counts, "edges": edges, "count": sum(counts)}


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
