"""Which keys a person means: globs and other spellings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from runvitals.catalog import CATALOG
from runvitals.query.globs import Glob, check_globs, is_glob


class KeyFilter:
    """Keys that match any of some patterns. No pattern means every key.

    Args:
        patterns: keys, or globs with `*`, `?` and `[…]`. The catalogue's other spellings of a key work too.

    Raises:
        ValueError: a pattern that is too long, or too many globs.

    Example:
        >>> wanted = KeyFilter(["gpu.*", "memory"])
        >>> [key for key in ("cpu", "gpu.0.temp", "memory_percent") if wanted(key)]
        ['gpu.0.temp', 'memory_percent']
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        given = list(patterns)
        check_globs(given)
        self._all = not given
        self._keys = {spelling for pattern in given for spelling in (pattern, canonical(pattern))}
        self._globs = [Glob(pattern) for pattern in given if is_glob(pattern)]

    def __call__(self, key: str) -> bool:
        if self._all or key in self._keys:
            return True
        if not self._globs:
            return False
        return any(glob(spelling) for spelling in spellings(key) for glob in self._globs)


def canonical(key: str) -> str:
    """The catalogue's spelling of a key; the key itself where the catalogue does not know it."""
    match = CATALOG.find(key)
    return key if match is None else match.key


@lru_cache(16_384)
def spellings(key: str) -> tuple[str, ...]:
    """The key and all its other spellings."""
    match = CATALOG.find(key)
    if match is None:
        return (key,)
    aliases = (alias.format(**match.labels) for alias in match.metric.aliases)
    return tuple(dict.fromkeys((key, match.key, *aliases)))
