"""The means of runs that were read before."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cachetools import LRUCache

from runvitals.server.library.run_library import NamedRun, OpenedRun, RunVersion

if TYPE_CHECKING:
    from runvitals.server.charts.overlay.run_means import RunMeans

KEPT_BYTES = 32 * 1024 * 1024
_BYTES_OF_NOTHING = 200
_Version = RunVersion | tuple[str, int]
_Key = tuple[weakref.ref[OpenedRun], str, str]


class KeptMeans:
    """Keeps the means of runs until these change; the least recently used are dropped."""

    def __init__(self) -> None:
        self._kept: LRUCache[_Key, tuple[_Version, RunMeans | None]] = LRUCache(KEPT_BYTES, _size)

    def of_run(self, run: NamedRun, keys: Sequence[str], how: str) -> Mapping[str, RunMeans | None]:
        """Return by key the means that are known of a run; None: it has none.

        Args:
            how: the axis, the part of it and the width.
        """
        version = _version(run)
        kept_means = {key: self._kept.get((weakref.ref(run.opened), key, how)) for key in keys}
        return {key: kept[1] for key, kept in kept_means.items() if kept is not None and kept[0] == version}

    def keeper(self, run: NamedRun, how: str) -> Callable[[Sequence[str], Mapping[str, RunMeans]], None]:
        """Return what keeps the means of a run as it is before they are read."""
        version = _version(run)

        def keep(keys: Sequence[str], means: Mapping[str, RunMeans]) -> None:
            if version is not None:
                for key in keys:
                    self._kept[weakref.ref(run.opened), key, how] = version, means.get(key)

        return keep


def _version(run: NamedRun) -> _Version | None:
    """Return what changes when a run changes; None if that is not known, as of a journal that is written."""
    version = run.opened.version()
    if version is not None:
        return version
    return None if run.state == "running" else (run.state, run.end_ms)


def _size(kept: tuple[_Version, RunMeans | None]) -> int:
    means = kept[1]
    return _BYTES_OF_NOTHING if means is None else means.nbytes
