"""Images that rows of a `.wandb` file name. They lie beside it, in the folder `files` of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from runvitals.model import media
from runvitals.model.limits import MEDIA_ITEMS
from runvitals.model.logged_media import LoggedMedia, MediaKey
from runvitals.readers.wandb_files.records import HistoryRow

_IMAGE, _IMAGES = "image-file", "images/separated"
_KINDS = (_IMAGE, _IMAGES)
_TYPE = "._type"
_DEEPEST = 10
_MAX_RECORDS = 100_000
"""Records in memory; later ones are left out."""


class WandbImages:
    """The images of a run, as its rows are read.

    Args:
        path: of the `.wandb` file.
        host: of the run.
    """

    def __init__(self, path: str, host: str) -> None:
        self._folder = os.path.realpath(os.path.join(os.path.dirname(path), "files"))
        self._host = host
        self._records: dict[str, list[LoggedMedia]] = {}
        self._count = 0

    def take(self, row: HistoryRow) -> HistoryRow:
        """Remember the images of a row. Returns the row without them: their sizes are no metrics."""
        data = _gather(row.data)
        if not any(isinstance(value, dict) for value in data.values()):
            return row
        seconds = data.get("_timestamp")
        time_ms = round(seconds * 1000) if isinstance(seconds, int | float) and isfinite(seconds) else 0
        for key, items in _find_images(data, "", _DEEPEST):
            if self._count < _MAX_RECORDS:
                record = LoggedMedia(key, media.IMAGE, row.step, time_ms, None, self._host, items)
                self._records.setdefault(key, []).append(record)
                self._count += 1
        return replace(row, data=_without(data, _DEEPEST))

    def keys(self) -> list[MediaKey]:
        """Return the names under which images were logged."""
        return [
            MediaKey(key, media.IMAGE, len(records), records[0].step, records[-1].step, records[-1].time_ms)
            for key, records in list(self._records.items())
        ]

    def of(self, key: str) -> list[LoggedMedia]:
        """Return the images logged under a name, by step."""
        return sorted(self._records.get(key, ()), key=lambda record: record.order)

    def content(self, item: Mapping[str, Any], most_bytes: int) -> bytes:
        """Return the content of the file of an item.

        Raises:
            OSError: it cannot be read, or is outside the folder of the run.
        """
        name = str(item["file"])
        path = os.path.realpath(os.path.join(self._folder, name))
        if not path.startswith(self._folder + os.sep):
            raise OSError(f"{name[:200]} is outside the folder of the run")
        with open(path, "rb") as file:
            return file.read(most_bytes)


def _gather(data: dict[str, Any]) -> dict[str, Any]:
    """The entries of a row, with those of an image in one: newer versions write `img.path` and others."""
    types = (key for key, value in data.items() if key.endswith(_TYPE) and value in _KINDS)
    names = [key.removesuffix(_TYPE) for key in types]
    if not names:
        return data
    gathered = dict(data)
    for name in names:
        fields = [key for key in gathered if key.startswith(f"{name}.")]
        gathered[name] = {key.removeprefix(f"{name}."): gathered.pop(key) for key in fields}
    return gathered


def _find_images(
    values: Mapping[str, Any], prefix: str, depth: int
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the images among values, also those in nested ones, under dotted names."""
    for key, value in values.items():
        if not isinstance(value, dict):
            continue
        if items := _items(value):
            yield prefix + key, items
        elif depth and not _is_image(value):
            yield from _find_images(value, f"{prefix}{key}.", depth - 1)


def _without(values: Mapping[str, Any], depth: int) -> dict[str, Any]:
    return {
        key: _without(value, depth - 1) if isinstance(value, dict) and depth else value
        for key, value in values.items()
        if not _is_image(value)
    }


def _is_image(value: object) -> bool:
    return isinstance(value, dict) and value.get("_type") in _KINDS


def _items(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the images of a value: their files and captions."""
    if value.get("_type") == _IMAGE:
        names, captions = [value.get("path")], [value.get("caption")]
    elif value.get("_type") == _IMAGES:
        names, captions = _to_list(value.get("filenames")), _to_list(value.get("captions"))
    else:
        return []
    captions += [None] * len(names)
    pairs = zip(names[:MEDIA_ITEMS], captions, strict=False)
    return [{"file": str(name), "caption": str(text or "")} for name, text in pairs if name]


def _to_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else []
