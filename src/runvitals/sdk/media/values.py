"""The types of `log` for images, audio, videos, HTML pages, texts and histograms."""

from __future__ import annotations

import io
import os
from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any

from runvitals.model import media
from runvitals.model.media_types import PLAIN_TEXT
from runvitals.sdk import arrays
from runvitals.sdk.media.base import Item, Media, figure_method, is_pil_image, text_of
from runvitals.sdk.media.pixels import animated_png, array_of, image_pixels, png, png_size, video_frames
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.media.wav import wav

if TYPE_CHECKING:
    from runvitals.sdk.media.annotations import Annotations

_CAPTION_CHARACTERS = 10_000
_MAX_BINS = 512
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
"""Modes of PIL's images that PNG supports; others are converted to RGB, or as `_CONVERTED` says."""
_CONVERTED = {"La": "LA", "PA": "RGBA", "RGBa": "RGBA"}
_DPI = 120


class Histogram(Media):
    """A histogram: how often values occur in intervals.

    Args:
        values: numbers, as a list or array.
        bins: number of intervals of equal width.
        counts, edges: a histogram that was computed before, such as NumPy's: n counts and n + 1 edges.
        np_histogram: counts and edges, as `numpy.histogram` returns them.
        sequence, num_bins: W&B's names for `values` and `bins`.

    Example:
        >>> run.log({"weights": runvitals.Histogram(weights)})
        >>> run.log({"weights": runvitals.Histogram(counts=counts, edges=edges)})
    """

    kind = media.HISTOGRAM

    def __init__(
        self,
        values: Any = None,
        bins: int = 64,
        *,
        counts: Any = None,
        edges: Any = None,
        np_histogram: tuple[Any, Any] | None = None,
        sequence: Any = None,
        num_bins: int | None = None,
    ) -> None:
        self._values = values if sequence is None else sequence
        self._bins = bins if num_bins is None else num_bins
        self._counts, self._edges = (counts, edges) if np_histogram is None else np_histogram

    def item(self, files: RunFiles) -> Item:
        """Return the histogram as an item without a file.

        Raises:
            ValueError: bins, counts or edges are invalid.
        """
        if not 1 <= self._bins <= _MAX_BINS:
            raise ValueError(f"{self._bins} bins; expected 1 to {_MAX_BINS}")
        if self._counts is not None:
            counts, edges = numbers_of(self._counts), numbers_of(self._edges)
            if len(edges) != len(counts) + 1 or len(counts) > _MAX_BINS:
                raise ValueError(
                    f"{len(counts)} counts and {len(edges)} edges; expected up to {_MAX_BINS} counts, and "
                    "one edge more"
                )
            if not all(isfinite(count) and count >= 0 for count in counts):
                raise ValueError("a count that is negative or not finite")
            if not all(map(isfinite, edges)) or any(low > high for low, high in pairwise(edges)):
                raise ValueError("edges that are not finite, or not in ascending order")
            return {"value": {"counts": counts, "edges": edges, "count": sum(counts)}}
        numbers = numbers_of(self._values)
        finite = [number for number in numbers if isfinite(number)]
        value: dict[str, Any] = {"count": len(numbers)}
        if len(finite) < len(numbers):
            value["not_finite"] = len(numbers) - len(finite)
        counts, edges = arrays.counts(finite, self._bins) if finite else ([], [])
        value.update(counts=counts, edges=edges)
        if finite:
            value.update(min=min(finite), max=max(finite), mean=sum(finite) / len(finite))
        return {"value": value}


class _WithCaption(Media):
    """Media of one file that is given by a path, as bytes, or as an object to encode."""

    expected: tuple[str, ...] = ("",)
    """The beginnings of the media types that it may have, if it is given as a file."""

    def __init__(self, data: Any = ..., caption: str | None = None, **others: Any) -> None:
        if others or data is ...:
            from runvitals.monitoring.settings import wandb_arguments  # few scripts use W&B's arguments

            data = wandb_arguments.data_of(type(self).__name__, data, others)
        self._data: Any = data._data if isinstance(data, _WithCaption) else data
        self._caption = caption

    def item(self, files: RunFiles) -> Item:
        item = self._store(files)
        if self._caption is not None:
            item["caption"] = text_of(self._caption)[:_CAPTION_CHARACTERS]
        return item

    def _store(self, files: RunFiles) -> Item:
        if isinstance(self._data, (str, os.PathLike)):
            return files.add_file(os.path.realpath(self._data), self.expected)
        if isinstance(self._data, (bytes, bytearray, memoryview)):
            return files.add(bytes(self._data), self.expected)
        return self._encode(files)

    def _encode(self, files: RunFiles) -> Item:
        raise TypeError(f"a {type(self._data).__name__}; expected a path or bytes")


class Image(_WithCaption):
    """An image.

    Args:
        data: an array of height × width (× 1 to 4 channels, also before height as in PyTorch), with integers
            from 0 to 255 or floats from 0 to 1; an image of PIL; a figure of matplotlib; a path, or the bytes
            of a PNG, JPEG, GIF, WebP, AVIF or SVG file.
        caption: a text to show below it.
        boxes, masks, classes: boxes and masks to show over it, as W&B's class takes them.
        others: further arguments of W&B's class, which have no effect here.

    Raises:
        ValueError: boxes without `box_data`, or masks without `mask_data` or `path`.

    Example:
        >>> run.log({"samples": [runvitals.Image(sample, caption=str(label)) for sample, label in batch]})
    """

    kind = media.IMAGE
    expected = ("image/",)

    def __init__(
        self,
        data: Any = ...,
        caption: str | None = None,
        *,
        boxes: Mapping[str, Any] | None = None,
        masks: Mapping[str, Any] | None = None,
        classes: Any = None,
        **others: Any,
    ) -> None:
        super().__init__(data, caption, **others)
        self._annotations: Annotations | None = None
        if boxes or masks:
            from runvitals.sdk.media.annotations import Annotations  # few images have them

            self._annotations = Annotations(boxes, masks, classes)

    def item(self, files: RunFiles) -> Item:
        """Store the image, and its boxes and masks."""
        item = super().item(files)
        return item if self._annotations is None else self._annotations.add_to(item, files)

    def _encode(self, files: RunFiles) -> Item:
        data = self._data
        if is_pil_image(data):
            return _image_item(files, _pil_png(data))
        if figure_method(data) == "savefig":
            return _image_item(files, _saved_figure(data))
        return _image_item(files, png(image_pixels(data)))


class Audio(_WithCaption):
    """Audio.

    Args:
        data: an array of samples (× channels), integers of 16 bits or floats from -1 to 1; a path, or the
            bytes of a WAV, MP3, FLAC, Ogg or M4A file.
        sample_rate: samples per second, for an array.
        caption: a text to show below it.
        others: further arguments of W&B's class, which have no effect here.

    Example:
        >>> run.log({"speech": runvitals.Audio(samples, sample_rate=16_000)})
    """

    kind = media.AUDIO
    expected = ("audio/",)

    def __init__(
        self, data: Any = ..., sample_rate: int | None = None, caption: str | None = None, **others: Any
    ) -> None:
        super().__init__(data, caption, **others)
        self._sample_rate = sample_rate

    def _encode(self, files: RunFiles) -> Item:
        if self._sample_rate is None:
            raise ValueError("no sample_rate; an array of samples needs one")
        return files.add(wav(self._data, int(self._sample_rate)))


class Video(_WithCaption):
    """A video.

    Args:
        data: an array of time × height × width (× channels), which becomes an animated PNG; a path, or the
            bytes of an MP4, WebM, Ogg, GIF, PNG or WebP file.
        fps: frames per second, for an array.
        caption: a text to show below it.
        others: further arguments of W&B's class, which have no effect here.

    Example:
        >>> run.log({"rollout": runvitals.Video(frames, fps=30)})
    """

    kind = media.VIDEO
    expected = ("video/", "image/")

    def __init__(self, data: Any = ..., fps: float = 4, caption: str | None = None, **others: Any) -> None:
        if isinstance(fps, str):  # W&B has the caption second
            fps, caption = 4 if caption is None else float(caption), fps
        super().__init__(data, caption, **others)
        self._fps = fps

    def _encode(self, files: RunFiles) -> Item:
        if not 0 < self._fps < 1e6:
            raise ValueError(f"{self._fps} frames per second; expected more than 0")
        return _image_item(files, animated_png(video_frames(self._data), float(self._fps)))


class Text(_WithCaption):
    """A text, shown as it is.

    Args:
        data: the text.
        caption: a text to show below it.
        others: further arguments of W&B's class, which have no effect here.

    Example:
        >>> run.log({"completion": runvitals.Text(model.generate(prompt), caption=prompt)})
    """

    kind = media.TEXT

    def _store(self, files: RunFiles) -> Item:
        return {**files.add(str(self._data).encode("utf-8", "replace")), "type": PLAIN_TEXT}


class Html(_WithCaption):
    """An HTML page, shown in a frame that cannot reach the network, this server or other pages.

    Args:
        data: the HTML, or the path of a file: as `pathlib.Path`, or a text that ends in `.html`.
        caption: a text to show below it.
        others: further arguments of W&B's class, which have no effect here.

    Example:
        >>> run.log({"report": runvitals.Html("<h1>Errors</h1>" + table)})
    """

    kind = media.HTML

    def _store(self, files: RunFiles) -> Item:
        data = self._data.read() if callable(getattr(self._data, "read", None)) else self._data
        if isinstance(data, os.PathLike) or (isinstance(data, str) and _is_page(data)):
            return {**files.add_file(os.path.realpath(data)), "type": "text/html"}
        return {**files.add(str(data).encode("utf-8", "replace")), "type": "text/html"}


class FigureMedia(Media):
    """A figure of matplotlib, recorded as PNG, or of plotly, as an HTML page with plotly's JavaScript.

    Args:
        figure: the figure.
        val: W&B's name for it.
    """

    kind = media.FIGURE

    def __init__(self, figure: Any = None, *, val: Any = None) -> None:
        self._figure = figure if val is None else val

    def item(self, files: RunFiles) -> Item:
        """Store the figure as PNG or as an HTML page."""
        if figure_method(self._figure) == "savefig":
            return _image_item(files, _saved_figure(self._figure))
        page = self._figure.to_html(include_plotlyjs=True, full_html=True)
        return {**files.add(page.encode("utf-8", "replace")), "type": "text/html"}


def to_media(value: Any) -> Media:
    """Return the media that a value of `log` is recorded as; `is_media` has accepted it."""
    if isinstance(value, Media):
        return value
    return Image(value) if is_pil_image(value) else FigureMedia(value)


def _is_page(text: str) -> bool:
    """Return whether a text is the path of an HTML file."""
    return text.endswith((".html", ".htm")) and "<" not in text and os.path.isfile(text)


def _image_item(files: RunFiles, content: bytes) -> Item:
    size = png_size(content)
    item = files.add(content)
    return item if size is None else {**item, "width": size[0], "height": size[1]}


def _pil_png(image: Any) -> bytes:
    if image.mode == "F":
        image = _as_grey(image)
    elif image.mode not in _PNG_MODES:
        image = image.convert(_CONVERTED.get(image.mode, "RGB"))
    body = io.BytesIO()
    image.save(body, "PNG")
    return body.getvalue()


def _as_grey(image: Any) -> Any:
    """Return an image of floats, which are 0 to 1, or 0 to 255, as in arrays."""
    scale = 255.0 if image.getextrema()[1] <= 1 else 1.0
    return image.point(lambda value: value * scale + 0.5).convert("L")


def _saved_figure(figure: Any) -> bytes:
    body = io.BytesIO()
    figure.savefig(body, format="png", dpi=_DPI)
    return body.getvalue()


def numbers_of(values: Any) -> Sequence[float]:
    """Return the numbers of an array, tensor or sequence of any shape."""
    if callable(getattr(values, "detach", None)) or callable(getattr(values, "numpy", None)):
        values = array_of(values)
    if hasattr(values, "astype") and hasattr(values, "tobytes"):
        return array("d", values.astype("float64").tobytes()).tolist()
    return [float(value) for value in values]
