"""The summary of a run as wandb's clients send and read it, and its values by dotted name for our lists.

What a client sends is kept as it is, in the section `FORM`; the section `summary` has its plain values by
dotted name. Both may change later: by other clients, on the page, or by rows that come without a summary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Any, Final, NamedTuple

from runvitals.model.names import name_fault, sanitized_name
from runvitals.server.doors.wandb.history_rows import STEP, json_safe
from runvitals.server.doors.wandb.run_ids import SECTION
from runvitals.server.runs.storage.search_columns import DELETED, LOGGED
from runvitals.server.runs.storage.sections import RunSections

FORM: Final = "wandb_summary"
"""The section with the summary as it was sent."""
SUMMARY: Final = "summary"
OUTDATED: Final = "outdated_summary"
"""In the section of wandb's clients: whether rows came later, without a summary."""
STORED: Final = (SECTION, SUMMARY, FORM, DELETED)
"""The sections that change with a client's summary."""
SUMMARY_SECTIONS: Final = (*STORED, LOGGED)
"""The sections that it is read from."""
_REMOVED: Final = "removed"
_OWN: Final = "_"
_TYPE: Final = "_type"
_DEPTH: Final = 16
_LAST: Final = "last"
_CHOSEN: Final = frozenset(("min", "max", "mean", "best", "first", _LAST))
_ABSENT: Final = object()


class Leaf(NamedTuple):
    """A plain value of a summary, and the keys that lead to it."""

    path: tuple[str, ...]
    value: Any


def is_own(key: str, value: object) -> bool:
    """Return whether an entry is for wandb's clients only: about the run itself, or a medium."""
    return key.startswith(_OWN) or (isinstance(value, dict) and _TYPE in value)


def leaves(summary: Mapping[str, Any]) -> dict[str, Leaf]:
    """Return the plain values of a summary by dotted name, as nested values of rows are named.

    The values that `define_metric(summary=…)` chose are found by the metric's name too: the last of them, if
    it is among several, else the first.

    Example:
        >>> leaves({"loss": {"min": 0.5}, "net": {"a": 1}, "_step": 7})
        {'loss': Leaf(path=('loss',), value=0.5),
         'loss.min': Leaf(path=('loss', 'min'), value=0.5),
         'net.a': Leaf(path=('net', 'a'), value=1)}
    """
    by_name: dict[str, Leaf] = {}
    for key, value in summary.items():
        if not is_own(key, value):
            _collect(by_name, key, (key,), value)
    return by_name


def last_numbers(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a summary by dotted name. Chosen minima have names of their own.

    Example:
        >>> last_numbers({"loss": {"min": 0.5}, "net": {"a": 1}, "name": "x"})
        {'loss.min': 0.5, 'net.a': 1}
    """
    by_name = leaves(summary)
    objects = {leaf.path[:-1] for leaf in by_name.values()}
    return {
        name: leaf.value
        for name, leaf in by_name.items()
        if leaf.path not in objects and type(leaf.value) in (int, float)
    }


def _collect(by_name: dict[str, Leaf], name: str, path: tuple[str, ...], value: Any) -> None:
    if name_fault(name):
        name = sanitized_name(name)  # as that of the same value in a row
    if not isinstance(value, dict) or len(path) > _DEPTH:
        by_name[name] = Leaf(path, value)
        return
    if value and value.keys() <= _CHOSEN:
        by_name[name] = Leaf(path, value.get(_LAST, next(iter(value.values()))))
    for key, inner in value.items():
        _collect(by_name, f"{name}.{key}", (*path, key), inner)


def summary_of(sections: RunSections) -> dict[str, Any]:
    """Return the summary of a run as clients read it."""
    shared = sections.shared
    own, changed, logged = (shared.get(name, {}) for name in (SECTION, SUMMARY, LOGGED))
    sent = shared.get(FORM, {})
    rows_count = bool(own.get(OUTDATED)) or not _knows_rows(sent)
    summary: dict[str, Any] = {**own.get(SUMMARY, {}), **sent}
    summary_leaves = leaves(summary)
    for name, leaf in summary_leaves.items():
        value = changed.get(name, logged.get(name, leaf.value) if rows_count else _ABSENT)
        if value is not leaf.value and value != leaf.value:
            summary = _replaced(summary, leaf.path, value)
    others = {**{name: logged[name] for name in logged if rows_count}, **changed}
    deleted = shared.get(DELETED, {})
    return summary | {
        name: value
        for name, value in others.items()
        if name not in summary_leaves and (name in changed or name not in deleted)
    }


def _knows_rows(sent: Mapping[str, Any]) -> bool:
    """Return whether a summary has values: the first one of a client is sent before they are in it."""
    return STEP in sent or bool(leaves(sent))


def _replaced(values: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return an object with another value at a path, or with none there."""
    key, *rest = path
    inner = values.get(key, _ABSENT)
    if inner is _ABSENT:
        return dict(values)
    if rest:
        return (
            {**values, key: _replaced(inner, tuple(rest), value)} if isinstance(inner, dict) else dict(values)
        )
    if value is _ABSENT:
        return {name: item for name, item in values.items() if name != key}
    return {**values, key: value}


class SentSummary(NamedTuple):
    """The sections that a summary changes, and the keys that it removes from sections."""

    sections: dict[str, dict[str, Any]]
    removed: dict[str, list[str]]

    def records(self) -> list[dict[str, Any]]:
        """Return the contents of records about it: what was sent has one of its own, because of its size."""
        form = {name: values for name, values in self.sections.items() if name == FORM}
        rest = {name: values for name, values in self.sections.items() if name != FORM}
        if self.removed:
            rest[_REMOVED] = self.removed
        return [record for record in (rest, form) if record]


def changed_summary(
    stored: RunSections, sent: Mapping[str, Any], logged: Collection[str] = (), complete: bool = True
) -> SentSummary:
    """Return what changes when a client sends a summary.

    Args:
        stored: the sections `STORED` before.
        logged: names of values in rows that came with it.
        complete: whether the client knows all of the summary, so that what is missing was deleted.
    """
    own, summary, form, deleted = (stored.shared.get(name, {}) for name in (SECTION, SUMMARY, FORM, DELETED))
    after = leaves(sent)
    sections: dict[str, dict[str, Any]] = {
        SUMMARY: {
            name: leaf.value
            for name, leaf in after.items()
            if name not in summary or summary[name] != leaf.value
        },
        FORM: {key: value for key, value in sent.items() if key not in form or form[key] != value},
    }
    removed: dict[str, list[str]] = {DELETED: sorted(deleted.keys() & after.keys())}
    if complete and (_knows_rows(sent) or not logged):
        before = leaves({**own.get(SUMMARY, {}), **form})
        missing = (before.keys() | set(logged)) - after.keys()
        sections[DELETED] = dict.fromkeys(sorted(missing - deleted.keys()), True)
        removed[SUMMARY] = sorted(missing & summary.keys())
        removed[FORM] = sorted(form.keys() - sent.keys())
    if own.get(OUTDATED):
        sections[SECTION] = {OUTDATED: False}
    return SentSummary(
        {name: values for name, values in sections.items() if values},
        {name: names for name, names in removed.items() if names},
    )


def edited_summary(stored: RunSections, sent: Mapping[str, Any]) -> SentSummary:
    """Return what changes when a user sends the summary that they have read, with their edits.

    Args:
        stored: the sections `SUMMARY_SECTIONS` before.
    """
    before = summary_of(stored)
    sent = _as_stored(sent, before)
    old_leaves, new_leaves = leaves(before), leaves(sent)
    changes = changed_summary(stored, sent)
    removed, deleted = changes.removed, stored.shared.get(DELETED, {})
    # Objects that were set by others are by dotted name from now on.
    if others := sorted(stored.shared.get(SUMMARY, {}).keys() - new_leaves.keys()):
        removed[SUMMARY] = others
    changes.sections.pop(DELETED, None)
    if missing := sorted(old_leaves.keys() - new_leaves.keys() - deleted.keys()):
        changes.sections[DELETED] = dict.fromkeys(missing, True)
    return changes


def _as_stored(sent: Any, before: Any) -> Any:
    """Return a value as it was stored where a client sends back what it has read: NaN is a text there."""
    if isinstance(sent, dict) and isinstance(before, dict):
        return {key: _as_stored(value, before.get(key)) for key, value in sent.items()}
    return (
        before if isinstance(sent, str) and isinstance(before, float) and json_safe(before) == sent else sent
    )


def keys_of(stored: RunSections, names: Set[str]) -> dict[str, list[str]]:
    """Return the keys of sections that have values of removed rows.

    Args:
        stored: the sections `STORED` before.
        names: of the values; everything else stays.
    """
    form = stored.shared.get(FORM, {})
    of_form = {key for key in form if leaves({key: form[key]}).keys() & names}
    inner_names = {name for name in stored.shared.get(SUMMARY, {}) if name.rpartition(".")[0] in names}
    return {SUMMARY: sorted(names | inner_names), FORM: sorted(of_form)}
