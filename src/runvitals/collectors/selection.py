"""Which sources a person wants: the setting `collectors`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Selection:
    """`["all"]`, `["cpu", "memory"]`, `["-network"]`: names to ask, `all`, and names with a minus to leave
    out. Names to leave out alone mean all others.

    Example:
        >>> "cpu" in Selection(["-network"]), "network" in Selection(["-network"])
        (True, False)
    """

    __slots__ = ("_all", "_left_out", "_named")

    def __init__(self, words: Iterable[str]) -> None:
        self._left_out = {word[1:] for word in words if word.startswith("-")}
        self._named = {word for word in words if not word.startswith("-")}
        self._all = not self._named or "all" in self._named

    def __contains__(self, name: object) -> bool:
        return name not in self._left_out and (self._all or name in self._named)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """The words that are no source's name, `names` being all there are."""
        return sorted((self._left_out | self._named) - {"all"} - set(names))
