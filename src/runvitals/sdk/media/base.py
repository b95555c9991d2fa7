"""Recognises values of `log` that are stored as files, without importing their packages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from runvitals.model import media
from runvitals.model.values import Sanitizer

if TYPE_CHECKING:
    from runvitals.sdk.media.run_files import RunFiles

Item = dict[str, Any]
"""An item of a MEDIA record; see docs/concepts/journal.md."""
_FIGURES = (("matplotlib.", "savefig"), ("plotly.", "to_html"))


class Media(ABC):
    """A value of `log` that is more than a number. Nothing is read or encoded before `log` is called.

    Attributes:
        kind: the kind in the journal.
        faults: descriptions of values that `item` had to change.
    """

    kind: ClassVar[str]
    faults: Collection[str] = ()

    @abstractmethod
    def item(self, files: RunFiles) -> Item:
        """Return the item that records it; its files are stored first.

        Raises:
            Exception: it cannot be encoded or stored.
        """


class ArrayHistogram(Media):
    """The histogram of a long array.

    Args:
        summary: the result of `arrays.histogram`.
    """

    kind = media.HISTOGRAM

    def __init__(self, summary: Mapping[str, Any]) -> None:
        self._summary = summary

    def item(self, files: RunFiles) -> Item:
        """Return the histogram as an item without a file."""
        about = {
            name: value for name, value in self._summary.items() if name not in ("_type", "values", "bins")
        }
        counts, edges = self._summary.get("values", []), self._summary.get("bins", [])
        return {"value": {**about, "counts": counts, "edges": edges}}


def is_media(value: object) -> bool:
    """Return whether a value of `log` is recorded as media. Never raises.

    That is an object of ours, a list of such, an image of PIL, or a figure of matplotlib or plotly.
    """
    try:
        if isinstance(value, (list, tuple)):
            return bool(value) and all(_is_single(inner) for inner in value)
        return _is_single(value)
    except Exception:  # noqa: BLE001 - code of the user's types, which may do anything
        return False


def _is_single(value: object) -> bool:
    return isinstance(value, Media) or is_pil_image(value) or figure_method(value) is not None


def text_of(value: object) -> str:
    """Return the text of a value; if its own code raises, its type and the error."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - code of the user's types, which may do anything
        return Sanitizer().unreadable(value, error)


def is_pil_image(value: object) -> bool:
    """Return whether a value is an image of PIL."""
    return _is_of(value, "PIL.") and callable(getattr(value, "save", None)) and hasattr(value, "mode")


def figure_method(value: object) -> str | None:
    """Return the method that encodes a figure; None if the value is no figure.

    It is `savefig` for matplotlib's figures and `to_html` for plotly's.
    """
    for package, method in _FIGURES:
        if _is_of(value, package) and callable(getattr(value, method, None)):
            return method
    return None


def _is_of(value: object, package: str) -> bool:
    """Return whether a value's type, or one of its bases, is of a package.

    Also true for the module `matplotlib.pyplot`, which has the methods of its current figure.
    """
    if isinstance(value, ModuleType):
        return package == "matplotlib." and value.__name__ == "matplotlib.pyplot"
    return any(str(base.__module__).startswith(package) for base in type(value).__mro__[:-1])
