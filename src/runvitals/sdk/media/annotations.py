"""Boxes and masks of images, as W&B's `Image` takes them: a JSON file, and a picture of each mask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.model.values import Sanitizer
from runvitals.sdk.arrays import as_plain
from runvitals.sdk.media.base import Item, text_of
from runvitals.sdk.media.pixels import array_of, mask_png
from runvitals.sdk.media.run_files import RunFiles

_MAX_BOXES = 10_000
_SIDES = ("minX", "minY", "maxX", "maxY")


class Classes:
    """Names of classes, for `Image(classes=)`.

    Args:
        class_set: a mapping with `id` and `name` for each class.

    Raises:
        ValueError: a class without `id` or `name`.

    Example:
        >>> Classes([{"id": 1, "name": "cat"}]).names
        {1: 'cat'}
    """

    def __init__(self, class_set: Iterable[Mapping[str, Any]]) -> None:
        self._class_set = list(class_set)
        for entry in self._class_set:
            if not {"id", "name"} <= {*entry}:
                raise ValueError(f"Classes(): a class without id or name: {text_of(entry)[:100]}")

    @property
    def names(self) -> dict[int, str]:
        """The names by number."""
        return {int(entry["id"]): text_of(entry["name"]) for entry in self._class_set}


class Annotations:
    """The boxes and masks of an image.

    Args:
        boxes: by name of the set, a mapping with `box_data` and, if they have names, `class_labels`.
        masks: by name, a mapping with `mask_data` (an array of height × width with numbers of classes) or
            `path` (of an image), and `class_labels`.
        classes: names of classes for sets that have no `class_labels`: `Classes`, or what it takes.

    Raises:
        ValueError: a set that has neither boxes nor a mask.
    """

    def __init__(
        self, boxes: Mapping[str, Any] | None, masks: Mapping[str, Any] | None, classes: Any
    ) -> None:
        self._boxes, self._masks = dict(boxes or {}), dict(masks or {})
        class_set = classes if classes is None or isinstance(classes, Classes) else Classes(classes)
        self._names = {} if class_set is None else class_set.names
        for name, layer in self._boxes.items():
            if "box_data" not in layer:
                raise ValueError(f"Image(): boxes[{name!r}] has no box_data")
        for name, layer in self._masks.items():
            if "mask_data" not in layer and "path" not in layer:
                raise ValueError(f"Image(): masks[{name!r}] has neither mask_data nor path")

    def add_to(self, item: Item, files: RunFiles) -> Item:
        """Store the files; return the item of the image with them.

        Raises:
            ValueError, TypeError, OSError: a box, an array or a file that is invalid.
        """
        stored = [(text_of(name), layer, self._mask(layer, files)) for name, layer in self._masks.items()]
        content = {
            "boxes": [
                {
                    "name": text_of(name),
                    "classes": self._classes(layer),
                    "boxes": _boxes_of(layer["box_data"]),
                }
                for name, layer in self._boxes.items()
            ],
            "masks": [
                {"name": name, "classes": self._classes(layer), "sha256": file["sha256"]}
                for name, layer, file in stored
            ],
        }
        file = {**files.add(dumps(Sanitizer().value(content))), "type": "application/json"}
        return {**item, "annotations": file["sha256"], "files": [file, *[mask for *_, mask in stored]]}

    def _classes(self, layer: Mapping[str, Any]) -> dict[str, str]:
        names = layer.get("class_labels") or self._names
        return {str(number): text_of(name) for number, name in names.items()}

    def _mask(self, layer: Mapping[str, Any], files: RunFiles) -> Item:
        if "mask_data" not in layer:
            return files.add_file(str(layer["path"]), ("image/",))
        return files.add(mask_png(array_of(layer["mask_data"])))


def _boxes_of(box_data: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return boxes with their left, upper, right and lower side.

    Raises:
        ValueError: a box without a position, or too many.
    """
    boxes = list(box_data)
    if len(boxes) > _MAX_BOXES:
        raise ValueError(f"{len(boxes):,} boxes; at most {_MAX_BOXES:,} are allowed")
    return [_box(box) for box in boxes]


def _box(logged_box: Mapping[str, Any]) -> dict[str, Any]:
    position = logged_box.get("position") or {}
    if {*_SIDES} <= {*position}:
        sides = [float(position[side]) for side in _SIDES]
    elif {"middle", "width", "height"} <= {*position}:
        (x, y), width, height = position["middle"], float(position["width"]), float(position["height"])
        sides = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    else:
        raise ValueError("a box without position; expected minX, minY, maxX, maxY, or middle, width, height")
    if not all(map(isfinite, sides)):
        raise ValueError("a box whose position is not finite")
    box: dict[str, Any] = {
        "sides": [float(side) for side in sides],
        "pixels": logged_box.get("domain") == "pixel",
    }
    if logged_box.get("class_id") is not None:
        box["class"] = int(logged_box["class_id"])
    if logged_box.get("box_caption") is not None:
        box["caption"] = text_of(logged_box["box_caption"])[:1000]
    if logged_box.get("scores"):
        box["scores"] = {text_of(name): as_plain(score) for name, score in logged_box["scores"].items()}
    return box
