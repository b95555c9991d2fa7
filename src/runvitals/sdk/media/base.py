"""What a value of `log` has to be to be stored as a file, found without importing anything."""

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
        kind: as in the journal.
        faults: what `item` could not record as it was given.
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
        summary: as `arrays.histogram` returns it.
    """

    kind = media.HISTOGRAM

    def __init__(self, summary: Mapping[str, Any]) -> None:
        self._summary = summary

    def item(self, files: RunFiles) -> Item:
        about = {
            name: value for name, value in self._summary.items() if name not in ("_type", "values", "bins")
        }
        counts, edges = self._summary.get("values", []), self._summary.get("bins", [])
        return {"value": {**about, "counts": counts, "edges": edges}}


def is_media(value: object) -> bool:
    """Whether a value of `log` is recorded as media: an object of ours, a list of such, an image of PIL, a
    figure of matplotlib or plotly. It never raises.
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
    """The method that encodes a figure: `savefig` of matplotlib's, `to_html` of plotly's; None if it is no
    figure.
    """
    for package, method in _FIGURES:
        if _is_of(value, package) and callable(getattr(value, method, None)):
            return method
    return None


def _is_of(value: object, package: str) -> bool:
    """Whether a value's type, or one that it inherits from, is of a package; or it is matplotlib's `pyplot`,
    which has the methods of its current figure.
    """
    if isinstance(value, ModuleType):
        return package == "matplotlib." and value.__name__ == "matplotlib.pyplot"
    return any(str(base.__module__).startswith(package) for base in type(value).__mro__[:-1])
