"""Events of wandb's automations as ours, and back.

An event has a type and a filter, which is JSON. Events of artifacts have conditions on the artifact; those of
runs have conditions on the run, and a metric or states beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from runvitals.model import json_values
from runvitals.server.doors.wandb.executor import InvalidArgument

USE_OURS: Final = "create it on the page, or by `runvitals automations apply`"
_COMPARISONS: Final = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_STATISTICS: Final = {None: "last", "AVERAGE": "mean", "MIN": "min", "MAX": "max"}
_DIRECTIONS: Final = {"INCREASE": "up", "DECREASE": "down", "ANY": "either"}
_STATES: Final = {
    "RUNNING": ("running",),
    "FINISHED": ("finished",),
    "FAILED": ("failed", "crashed", "lost"),
}
"""Ours, by theirs: a killed run is none of these."""
_WHERE: Final = {"display_name": "run_name", "displayName": "run_name", "username": "author", "tags": "tag"}
"""Our parts of a filter, by fields of runs."""
ARTIFACT_EVENTS: Final = {
    "CREATE_ARTIFACT": "artifact.version",
    "ADD_ARTIFACT_ALIAS": "artifact.alias",
    "LINK_MODEL": "registry.link",
}
Fields = Mapping[str, Any]


class EventParts(NamedTuple):
    """The event of an automation of ours, and those parts of its filter that are about runs."""

    event: dict[str, Any]
    where: dict[str, Any]


def our_event(kind: str, filter_text: str, collection: str) -> EventParts:
    """Return the parts of our automation for an event of theirs.

    Args:
        filter_text: the JSON of its filter.
        collection: the only collection that it is about; "": any.

    Raises:
        InvalidArgument: there is no such event here, or its filter has conditions that ours cannot have.

    Example:
        >>> our_event("ADD_ARTIFACT_ALIAS", '{"alias": "prod"}', "").event
        {'kind': 'artifact.alias', 'alias': '^prod$', 'collection': ''}
    """
    fields = _object(filter_text, "eventFilter")
    if kind in ARTIFACT_EVENTS:
        return EventParts(_artifact_event(kind, fields, collection), {})
    where = _about_run(_object(fields.get("run_filter"), "run_filter"))
    if kind == "RUN_STATE":
        return EventParts(_state_event(fields), where)
    make = _METRIC_EVENTS.get(kind)
    metric = fields.get("run_metric_filter")
    if make is None or not isinstance(metric, dict) or len(metric) != 1:
        allowed = ", ".join((*ARTIFACT_EVENTS, "RUN_STATE", *_METRIC_EVENTS))
        raise InvalidArgument(f"automations for {kind[:60]} are not supported; expected one of {allowed}")
    try:
        return EventParts(make(next(iter(metric.values()))), where)
    except (KeyError, TypeError) as error:
        raise InvalidArgument(f"run_metric_filter: invalid or missing {error}") from None


def their_event(definition: Fields) -> tuple[str, str] | None:
    """Return type and filter of their event for an automation of ours; None if they have no such event."""
    event, where = definition["event"], definition["filter"]
    kind = event["kind"]
    run_filter = json.dumps({"$and": _conditions(where)})
    for theirs, ours in ARTIFACT_EVENTS.items():
        if kind == ours:
            alias = event.get("alias")
            conditions = [{"alias": {"$regex": alias}}] if alias else []
            return theirs, json.dumps({"filter": json.dumps({"$or": [{"$and": conditions}]})})
    if kind == "run.state":
        states = [theirs for theirs, ours in _STATES.items() if set(ours) & set(event["states"])]
        about = {"run_state_filter": {"states": states}}
        return ("RUN_STATE", json.dumps({"run_filter": run_filter, **about})) if states else None
    metric = _metric_filter(event)
    if metric is None:
        return None
    theirs, about = metric
    return theirs, json.dumps({"run_filter": run_filter, "run_metric_filter": about})


def _metric_filter(event: Fields) -> tuple[str, dict[str, Any]] | None:
    kind, name = event["kind"], event.get("metric")
    if kind == "metric.threshold" and event["comparison"] in _COMPARISONS.values():
        about = {
            "name": name,
            "agg_op": _key(_STATISTICS, event["statistic"]),
            "window_size": event["window"],
        }
        about |= {"cmp_op": _key(_COMPARISONS, event["comparison"])}
        about["threshold"] = event["value"]
        return "RUN_METRIC", {"threshold_filter": about}
    if kind == "metric.change":
        about = {"name": name, "agg_op": "AVERAGE", "current_window_size": event["window"]}
        about |= {"prior_window_size": event["before"], "change_amount": event["amount"]}
        about |= {"change_type": "RELATIVE" if event["relative"] else "ABSOLUTE"}
        return "RUN_METRIC_CHANGE", {
            "change_filter": {**about, "change_dir": _key(_DIRECTIONS, event["direction"])}
        }
    if kind == "metric.z_score":
        about = {"name": name, "window_size": event["window"], "threshold": event["value"]}
        return "RUN_METRIC_ZSCORE", {
            "zscore_filter": {**about, "change_dir": _key(_DIRECTIONS, event["direction"])}
        }
    return None


def _key(names: Mapping[Any, str], value: str) -> Any:
    return next(key for key, ours in names.items() if ours == value)


def _conditions(where: Fields) -> list[dict[str, Any]]:
    fields = (("display_name", "run_name", "$regex"), ("username", "author", "$eq"), ("tags", "tag", "$eq"))
    return [{theirs: {operator: where[ours]}} for theirs, ours, operator in fields if where.get(ours)]


def _artifact_event(kind: str, fields: Fields, collection: str) -> dict[str, Any]:
    event = {"kind": ARTIFACT_EVENTS[kind], "collection": _exactly(collection)}
    patterns = {name: _pattern(name, operator, value) for name, operator, value in _all_of(fields)}
    if kind != "ADD_ARTIFACT_ALIAS":
        if patterns:
            raise InvalidArgument(f"{kind}: a filter is not supported here; {USE_OURS}")
        return event
    if set(patterns) - {"alias"}:
        raise InvalidArgument(f"{kind}: only the alias can be filtered here; {USE_OURS}")
    return {"kind": event["kind"], "alias": patterns.get("alias", "."), "collection": event["collection"]}


def _state_event(fields: Fields) -> dict[str, Any]:
    about = fields.get("run_state_filter")
    states = about.get("states") if isinstance(about, dict) else None
    if not isinstance(states, list) or not states or not all(state in _STATES for state in states):
        raise InvalidArgument(f"run_state_filter: expected states, some of {', '.join(_STATES)}")
    return {"kind": "run.state", "states": [ours for state in states for ours in _STATES[state]]}


def _threshold(metric: Fields) -> dict[str, Any]:
    return {
        "kind": "metric.threshold",
        "metric": metric["name"],
        "value": float(metric["threshold"]),
        "comparison": _COMPARISONS[metric["cmp_op"]],
        "statistic": _STATISTICS[metric.get("agg_op")],
        "window": metric.get("window_size", 1) if metric.get("agg_op") else 1,
    }


def _change(metric: Fields) -> dict[str, Any]:
    if metric.get("agg_op") not in (None, "AVERAGE"):
        raise InvalidArgument(f"a change is that of a mean here, not of {metric['agg_op']}; {USE_OURS}")
    has_window = metric.get("agg_op") is not None
    return {
        "kind": "metric.change",
        "metric": metric["name"],
        "amount": float(metric["change_amount"]),
        "relative": metric["change_type"] == "RELATIVE",
        "direction": _DIRECTIONS[metric["change_dir"]],
        "window": metric.get("current_window_size", 1) if has_window else 1,
        "before": metric.get("prior_window_size", 1) if has_window else 1,
    }


def _z_score(metric: Fields) -> dict[str, Any]:
    return {
        "kind": "metric.z_score",
        "metric": metric["name"],
        "value": float(metric.get("threshold", 3)),
        "direction": _DIRECTIONS[metric.get("change_dir", "ANY")],
        "window": metric.get("window_size", 30),
    }


_METRIC_EVENTS: Final[Mapping[str, Callable[[Fields], dict[str, Any]]]] = {
    "RUN_METRIC": _threshold,
    "RUN_METRIC_CHANGE": _change,
    "RUN_METRIC_ZSCORE": _z_score,
}


def _about_run(fields: Fields) -> dict[str, Any]:
    where: dict[str, Any] = {}
    for name, operator, value in _all_of(fields):
        ours = _WHERE.get(name)
        if ours is None or ours in where:
            raise InvalidArgument(
                f"runs cannot be filtered by {name[:60]} here; expected display_name, username, tags"
            )
        if ours == "run_name":
            where[ours] = _pattern(name, operator, value)
        elif operator in ("$eq", "$contains") and isinstance(value, str):
            where[ours] = value
        else:
            raise InvalidArgument(f"{name}: expected one text")
    return where


def _all_of(fields: Fields) -> Iterator[tuple[str, str, Any]]:
    """Yield the conditions of a filter, which all hold: field, operator and operand."""
    for name, value in fields.items():
        if name in ("$and", "$or"):
            parts: list[Any] = value if isinstance(value, list) else [None]
            if (name == "$or" and len(parts) > 1) or not all(isinstance(part, dict) for part in parts):
                raise InvalidArgument(f"eventFilter: conditions must all hold; {USE_OURS}")
            for part in parts:
                yield from _all_of(part)
        elif name.startswith("$"):
            raise InvalidArgument(f"eventFilter: {name[:60]} is not supported; {USE_OURS}")
        elif isinstance(value, dict):
            yield from ((name, operator, operand) for operator, operand in value.items())
        else:
            yield name, "$eq", value


def _pattern(name: str, operator: str, value: Any) -> str:
    """Return the regular expression for a condition on a text."""
    if (
        operator == "$in"
        and isinstance(value, list)
        and value
        and all(isinstance(text, str) for text in value)
    ):
        return f"^({'|'.join(map(re.escape, value))})$"
    if isinstance(value, str) and value:
        if operator == "$regex":
            return value
        if operator == "$contains":
            return re.escape(value)
        if operator == "$eq":
            return _exactly(value)
    raise InvalidArgument(
        f"{name[:60]}: expected $eq, $in, $contains or $regex with a text, not {operator[:60]}"
    )


def _exactly(text: str) -> str:
    return f"^{re.escape(text)}$" if text else ""


def _object(text: Any, name: str) -> dict[str, Any]:
    try:
        value = json_values.decode(text) if isinstance(text, str) else text
    except ValueError:
        value = text
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidArgument(f"{name}: expected a JSON object")
    return value
