"""The setting `collectors`, which enables and disables collectors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Selection:
    """Names to enable, `all`, and names to disable with a minus.

    `["all"]`, `["cpu", "memory"]`, `["-network"]`. If only names to disable are given, all others are
    enabled.

    Example:
        >>> "cpu" in Selection(["-network"]), "network" in Selection(["-network"])
        (True, False)
    """

    __slots__ = ("_all", "_disabled", "_enabled")

    def __init__(self, words: Iterable[str]) -> None:
        self._disabled = {word[1:] for word in words if word.startswith("-")}
        self._enabled = {word for word in words if not word.startswith("-")}
        self._all = not self._enabled or "all" in self._enabled

    def __contains__(self, name: object) -> bool:
        return name not in self._disabled and (self._all or name in self._enabled)

    def unknown_names(self, names: Iterable[str]) -> list[str]:
        """Return the selected words that are not in `names`, the names of all collectors."""
        return sorted((self._disabled | self._enabled) - {"all"} - set(names))
