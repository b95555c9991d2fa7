"""Selects metric keys by glob, or by the names that MLflow and W&B use."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from runvitals.model.metrics import DEFINITIONS, mlflow
from runvitals.model.metrics.definitions import Match
from runvitals.readers.journals.globs import Glob, check_globs, is_glob

_WANDB_PREFIX = "system."
"""The prefix of W&B's system metrics."""
# Suffixes that identify a glob over MLflow's names. Otherwise globs over our keys, such as `s*`, would match
# MLflow's names too.
_MLFLOW_SUFFIXES = ("_percentage", "_megabytes", "_gigabytes", "_watts")


class KeyFilter:
    """Matches keys against patterns. Without patterns, all keys match.

    Args:
        patterns: keys, or globs with `*`, `?` and `[…]`. Other names of a key work too: aliases, W&B's
            (`system.gpu.0.temp`) and MLflow's (`system/gpu_0_utilization_percentage`; without an index it
            matches all GPUs).

    Raises:
        TypeError: a pattern is not a string, for example a nested list.
        ValueError: a pattern is too long, or there are too many globs.

    Example:
        >>> wanted = KeyFilter(["gpu.*", "memory"])
        >>> [key for key in ("cpu", "gpu.0.temp", "memory_percent") if wanted(key)]
        ['gpu.0.temp', 'memory_percent']
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self.patterns = tuple(patterns)
        for pattern in self.patterns:
            if not isinstance(pattern, str):
                raise TypeError(
                    f"invalid key pattern {pattern!r:.60}: expected a string, not {type(pattern).__name__}"
                )
        check_globs(self.patterns)
        self._keys = {key for pattern in self.patterns for key in _possible_keys(pattern)}
        globs = [without_prefix(pattern) for pattern in self.patterns if is_glob(pattern)]
        self._mlflow_globs = [Glob(mlflow.bare(text)) for text in globs if _is_mlflow_glob(text)]
        self._globs = [Glob(text) for text in globs if not _is_mlflow_glob(text)]

    def __call__(self, key: str) -> bool:
        """Return whether a key is selected; every key is if there are no patterns."""
        if not self.patterns or key in self._keys:
            return True
        mlflow_names = mlflow_spellings(key)
        if not self._keys.isdisjoint(mlflow_names):
            return True
        if any(glob(name) for name in mlflow_names for glob in self._mlflow_globs):
            return True
        if not self._globs:
            return False
        return any(glob(spelling) for spelling in spellings(key) for glob in self._globs)


def find(key: str) -> Match | None:
    """Return the metric of a key by any name: ours, W&B's or MLflow's."""
    return DEFINITIONS.find(key) or DEFINITIONS.find(without_prefix(key)) or mlflow.from_mlflow(key)


def canonical(key: str) -> str:
    """Return our name of a key; the key itself if it is unknown."""
    match = find(key)
    return key if match is None else match.key


def unit(key: str) -> str:
    """Return the unit of a key's values; MLflow's unit for an MLflow name, "" for an unknown key."""
    match = DEFINITIONS.find(key)
    if match is not None:
        return match.metric.unit
    return mlflow.unit_of(key) if mlflow.from_mlflow(key) is not None else ""


@lru_cache(16_384)
def spellings(key: str) -> tuple[str, ...]:
    """Return the key and all its aliases."""
    match = DEFINITIONS.find(key)
    if match is None:
        return (key,)
    aliases = (alias.format(**match.labels) for alias in match.metric.aliases)
    return tuple(dict.fromkeys((key, match.key, *aliases)))


@lru_cache(16_384)
def mlflow_spellings(key: str) -> tuple[str, ...]:
    """MLflow's names of a key, in all spellings."""
    match = DEFINITIONS.find(mlflow.OF_LIMIT if key == mlflow.OF_HOST else key)
    return () if match is None else mlflow.spellings(match)


def without_prefix(pattern: str) -> str:
    """Return a W&B key or glob without the prefix `system.`; others unchanged."""
    if DEFINITIONS.find(pattern) is not None or not pattern.startswith(_WANDB_PREFIX):
        return pattern
    rest = pattern.removeprefix(_WANDB_PREFIX)
    family = rest.partition(".")[0]
    return rest if family in _FAMILIES else pattern


def _possible_keys(pattern: str) -> tuple[str, ...]:
    """Return a pattern, and the keys of which it may be another name."""
    if mlflow.from_mlflow(pattern) is not None and DEFINITIONS.find(pattern) is None:
        return (pattern, mlflow.bare(pattern))
    return (pattern, canonical(pattern))


def _is_mlflow_glob(pattern: str) -> bool:
    return pattern.startswith(mlflow.PREFIX) or pattern.endswith(_MLFLOW_SUFFIXES)


_FAMILIES = frozenset(metric.key.partition(".")[0] for metric in DEFINITIONS.metrics)
