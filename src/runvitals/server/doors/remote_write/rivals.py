"""Tells apart series that would be the same metric of ours: those of two exporters on one host.

A series whose labels change, say because another pod runs the exporter, goes on where the former one ended.
One that is sent while the other one goes on is another series. So it is after a restart, too: a fact
about the run says which series of a host were told apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.server.doors.exporters.translation import Translation

_OF_EXPORTER: Final = (
    "instance",
    "job",
    "exported_instance",
    "exported_job",
    "prometheus_replica",
    "replica",
)
"""Labels that differ between exporters, and between replicas of a Prometheus."""
_GOES_ON_MS: Final = 300_000
"""How long an exporter may be silent before another one goes on with its metrics."""
_NEVER: Final = np.iinfo(np.int64).max


SECTION: Final = "exporters"
"""The facts of a run with digests of the keys of series that were told apart, by host."""
_MAX_KEPT: Final = 5000
"""Series of a host that are remembered."""
Whose = str | int | None
"""The name or number of a team or user; None: there are no accounts."""


def digest(key: str) -> str:
    """Return a digest of a key, as facts about runs have it."""
    return hashlib.blake2b(key.encode(), digest_size=6).hexdigest()


class ToldApart:
    """The series that were told apart, of all runs and hosts: digests of their keys."""

    def __init__(self) -> None:
        self._by_host: dict[tuple[Whose, str, str], set[str]] = {}

    def load(self, run: str, whose: Iterable[Whose], facts: Mapping[str, Any]) -> None:
        """Add those of a run from its facts; `whose`: all ways in which senders name its owner."""
        for host, digests in facts.items():
            texts = (
                {text for text in digests if isinstance(text, str)} if isinstance(digests, list) else set()
            )
            for owner in whose:
                self._by_host[owner, run, host] = texts

    def has(self, whose: Whose, run: str, host: str, key: str) -> bool:
        """Return whether a series of a host was kept beside others."""
        digests = self._by_host.get((whose, run, host))
        return digests is not None and digest(key) in digests

    def add(self, whose: Whose, run: str, host: str, key: str) -> None:
        """Remember a series."""
        digests = self._by_host.setdefault((whose, run, host), set())
        if len(digests) < _MAX_KEPT:
            digests.add(digest(key))

    def facts(self, whose: Whose, run: str, host: str) -> dict[str, Any]:
        """Return the section of a run about one host."""
        return {host: sorted(self._by_host.get((whose, run, host), ()))}


class _Owner(NamedTuple):
    """The series that has a key of ours. `exporter`: the labels that name the exporter."""

    number: int
    exporter: tuple[str, ...]


class _Rival(NamedTuple):
    """A later series of the same key. `is_of_other`: of another exporter."""

    owner: int
    is_of_other: bool
    labels: Mapping[str, str]


class Rivals:
    """The series of one sender that have a key of ours, and later series of the same keys."""

    def __init__(self) -> None:
        self._owners: dict[tuple[int, str], _Owner] = {}
        self._rivals: dict[int, _Rival] = {}
        self._first_ms = np.full(1024, _NEVER)
        self._last_ms = np.zeros(1024, np.int64)
        self._is_watched = np.zeros(1024, np.bool_)

    def add(self, number: int, target: int, mapping: Translation, labels: Mapping[str, str]) -> None:
        """Note a series of a metric of ours; `target`: the number of its run and host."""
        while number >= len(self._is_watched):
            self._first_ms = np.concatenate((self._first_ms, np.full_like(self._first_ms, _NEVER)))
            self._last_ms = np.concatenate((self._last_ms, np.zeros_like(self._last_ms)))
            self._is_watched = np.concatenate((self._is_watched, np.zeros_like(self._is_watched)))
        self._is_watched[number] = True
        exporter = tuple(labels.get(name, "") for name in _OF_EXPORTER)
        names = [f"{input_.of.name}\n{input_.name}" for input_ in mapping.inputs]
        for key in names if mapping.key is None else [mapping.key]:
            owner = self._owners.setdefault((target, key), _Owner(number, exporter))
            is_of_other = owner.exporter != exporter
            # Several sensors of one exporter may be the same input of a derived metric.
            if owner.number != number and (is_of_other or mapping.key is not None):
                self._rivals[number] = _Rival(owner.number, is_of_other, dict(labels))
                return

    def of_samples(
        self, series: NDArray[np.int64], t: Integers, values: Floats
    ) -> Iterator[tuple[int, Mapping[str, str]]]:
        """Yield the series, with their labels, that turn out to be others: their owners have gone on."""
        is_watched = self._is_watched_of(series) & ~np.isnan(values)
        np.maximum.at(self._last_ms, series[is_watched], t[is_watched])
        np.minimum.at(self._first_ms, series[is_watched], t[is_watched])
        for number, rival in list(self._rivals.items()):
            begun_ms = self._first_ms[number]
            patience_ms = _GOES_ON_MS if rival.is_of_other else 0
            if begun_ms != _NEVER and self._last_ms[rival.owner] >= begun_ms - patience_ms:
                del self._rivals[number]
                self._is_watched[number] = False
                yield number, rival.labels

    def _is_watched_of(self, series: NDArray[np.int64]) -> NDArray[np.bool_]:
        is_known = series < len(self._is_watched)
        watched: NDArray[np.bool_] = is_known & self._is_watched[np.where(is_known, series, 0)]
        return watched
