"""The kinds of destinations: those built in, and those that installed packages add."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = frozenset((
    "cloudwatch", "files", "http", "https", "mlflow", "otel", "prometheus", "remote_write", "tensorboard",
    "wandb",
))  # fmt: skip
ENTRY_POINTS = "runvitals.destinations"
"""The group of entry points of packages that add kinds."""


class UnknownDestination(ValueError):
    """No package of this interpreter adds such a kind."""


def check(kind: str) -> None:
    """Raise UnknownDestination, which lists the known kinds, if there is none like this; import nothing."""
    if kind not in BUILT_IN:
        find_added(kind)


def find_added(kind: str) -> EntryPoint:
    """Return the entry point of a kind that an installed package adds.

    Raises:
        UnknownDestination: no package adds it; the text lists the known kinds.
    """
    from importlib.metadata import entry_points  # 20 ms that built-in destinations do not need

    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if kind not in entries:
        kinds = ", ".join(sorted({*BUILT_IN, *entries}))
        raise UnknownDestination(f"unknown destination {kind!r}; expected one of {kinds}")
    return entries[kind]
