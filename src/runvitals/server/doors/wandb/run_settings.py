"""Converts the description of a run that a client begins into our sections."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from runvitals.model.values import Sanitizer
from runvitals.monitoring.environment import redaction
from runvitals.server.doors.wandb.executor import InvalidArgument

INTERNAL: Final = "_wandb"
_FEATURES: Final = "3"
_OFFLINE: Final = 4
"""Numbers in wandb's message TelemetryRecord: the list of features, and one of these."""
_MAX_CHARACTERS: Final = 4 << 20
_MAX_SECONDS: Final = 1e11
_MOMENT: Final = re.compile(r"(?P<second>[-0-9T:]{19})(?P<fraction>\.[0-9]{0,9}|)Z", re.ASCII)
_GOALS: Final[Mapping[int, str]] = {1: "minimize", 2: "maximize"}
# The fields of a metric definition, by the numbers that clients send.
_NAME, _GLOB, _X_NAME, _X_INDEX, _OPTIONS, _SUMMARY, _GOAL = "1", "2", "4", "5", "6", "7", "8"
_HIDDEN_OPTION: Final = 2
_SUMMARY_NUMBERS: Final[Mapping[int, str]] = {
    1: "min",
    2: "max",
    3: "mean",
    5: "last",
    6: "none",
    7: "last",
}


def parsed_json(what: str, text: str | None) -> dict[str, Any]:
    """Return the object in a JSON text, with what our own SDK would record; empty if there is none.

    Raises:
        InvalidArgument: it is not an object in JSON.
    """
    if not text:
        return {}
    if len(text) > _MAX_CHARACTERS:
        raise InvalidArgument(f"{what}: {len(text):,} characters; at most {_MAX_CHARACTERS:,} are allowed")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{what} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArgument(f"{what} is not a JSON object")
    repaired: dict[str, Any] = Sanitizer().value(value)
    return repaired


def config_values(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without wandb's own entries.

    Example:
        >>> config_values({"lr": {"desc": None, "value": 0.1}, "_wandb": {"value": {"t": {}}}})
        {'lr': 0.1}
    """
    return {key: _unwrap(value) for key, value in sent.items() if key != INTERNAL}


def removed_config(
    text: str | None, sent: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the keys that a client has removed from a configuration, by section: what it sends is complete.

    Args:
        text: as sent; None: the client said nothing about the configuration.
        sent, config: what it has, and what was stored before.
    """
    missing = sorted(config.keys() - sent.keys()) if text else []
    return {"config": missing} if missing else {}


def wrapped_config(values: Mapping[str, Any]) -> str:
    """Return a configuration as clients read it."""
    return json.dumps({key: {"value": value, "desc": None} for key, value in values.items()})


def internal_values(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return wandb's own entries of a configuration: client version, metric definitions, machines."""
    values = _unwrap(sent.get(INTERNAL, {}))
    return values if isinstance(values, dict) else {}


def was_offline(internal: Mapping[str, Any]) -> bool:
    """Return whether wandb's own entries are of a session recorded offline, which `wandb sync` sends."""
    telemetry = internal.get("t")
    features = telemetry.get(_FEATURES) if isinstance(telemetry, dict) else None
    return isinstance(features, list) and _OFFLINE in features


def session_ms(internal: Mapping[str, Any]) -> int | None:
    """Return when a session began, by its machine's clock; None if it does not say so.

    Example:
        >>> session_ms({"e": {"w": {"startedAt": "2026-11-30T00:00:00.5Z"}}}), session_ms({"start_time": 2.5})
        (1795996800500, 2500)
    """
    seconds = internal.get("start_time")  # of clients before 0.19
    machines = internal.get("e")
    for machine in machines.values() if isinstance(machines, dict) else ():
        started = machine.get("startedAt") if isinstance(machine, dict) else None
        if isinstance(started, str) and (moment := _MOMENT.fullmatch(started)):
            seconds = _timestamp(moment["second"]) + float(f"0{moment['fraction']}")
    return (
        round(seconds * 1000) if isinstance(seconds, (int, float)) and abs(seconds) < _MAX_SECONDS else None
    )


def _timestamp(second: str) -> float:
    try:
        return datetime.fromisoformat(f"{second}+00:00").timestamp()
    except ValueError:  # such as the 31st of February
        return math.nan


def metric_definitions(internal: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the choices of `define_metric`, as the section `metrics` has them.

    Example:
        >>> metric_definitions({"m": [{"1": "epoch"}, {"1": "loss", "5": 1, "7": [1], "8": 1}]})
        {'loss': {'summary': 'min', 'x': 'epoch', 'goal': 'minimize'}}
    """
    listed = internal.get("m")
    definitions = (
        [definition for definition in listed if isinstance(definition, dict)]
        if isinstance(listed, list)
        else []
    )
    by_name: dict[str, dict[str, Any]] = {}
    for definition in definitions:
        name = definition.get(_NAME) or definition.get(_GLOB)
        if not isinstance(name, str):
            continue
        fields: dict[str, Any] = {}
        kinds = [_SUMMARY_NUMBERS.get(number) for number in _numbers(definition.get(_SUMMARY))]
        if summary_kinds := [kind for kind in kinds if kind is not None]:
            fields["summary"] = "last" if "last" in summary_kinds else summary_kinds[0]
        x = definition.get(_X_NAME)
        index = definition.get(_X_INDEX)
        if isinstance(index, int) and 1 <= index <= len(definitions):
            x = definitions[index - 1].get(_NAME)
        if isinstance(x, str) and x and x != "_step":
            fields["x"] = x
        if _HIDDEN_OPTION in _numbers(definition.get(_OPTIONS)):
            fields["hidden"] = True
        goal = definition.get(_GOAL)
        if isinstance(goal, int) and goal in _GOALS:
            fields["goal"] = _GOALS[goal]
        if fields:
            by_name[name] = fields
    return by_name


def run_values(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section `run` of what a client sends: what it leaves out or sends as null stays as it is."""
    names = {
        "display_name": "name",
        "group_name": "group",
        "job_type": "job_type",
        "notes": "notes",
        "tags": "tags",
    }
    return {ours: sent[theirs] for theirs, ours in names.items() if sent.get(theirs) is not None}


def machine_values(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a machine in what a client sends at the start."""
    facts: dict[str, Any] = {}
    if sent.get("job_program"):
        facts["program"] = sent["job_program"]
    git = {
        name: redaction.url(sent[theirs]) if name == "remote" else sent[theirs]
        for name, theirs in (("remote", "job_repo"), ("commit", "commit"))
        if sent.get(theirs)
    }
    return {**facts, "git": git} if git else facts


def _unwrap(value: Any) -> Any:
    if isinstance(value, dict) and "value" in value and value.keys() <= {"value", "desc"}:
        return value["value"]
    return value


def _numbers(value: object) -> list[int]:
    """Return the numbers in a list; a single number counts as one."""
    values = value if isinstance(value, list) else [value]
    return [number for number in values if isinstance(number, int) and not isinstance(number, bool)]
