"""The overview of a run: labels and values, safe for a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.model.device import devices_of
from runvitals.model.ending import signal_name
from runvitals.model.failure import failure_of
from runvitals.model.run import Run
from runvitals.model.run_json import finite
from runvitals.monitoring.environment import redaction
from runvitals.readers.journals.console import ConsoleText
from runvitals.readers.journals.history import leaves
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row

_MACHINE = ("os", "kernel", "cpu_model", "cpus", "memory_gib", "python", "cwd")
_MAX_LETTERS = 300
_STATE_STYLES = {"running": "good", "finished": "value", "failed": "bad", "crashed": "bad", "lost": "bad"}


def overview(run: Run, printed: Sequence[ConsoleText] = ()) -> list[Row]:
    """Return the rows of the overview.

    Args:
        printed: the end of its output, for why it failed.
    """
    rows: list[Row] = [
        [("State ", "dim"), (ending(run), _STATE_STYLES.get(run.state, "value"))],
        *_failure(run, printed),
        *_facts({
            "Name": run.name,
            "Id": run.id,
            "Project": run.project,
            "Tags": ", ".join(run.tags),
            "Notes": run.notes,
            "Started": moment(run.started_ms),
            "Duration": axes.elapsed(run.duration_ms),
            "Command": shlex.join(run.command),
        }),
    ]  # fmt: skip
    for host in run.hosts:
        machine = run.machines.get(host.name, {})
        rows += _section(f"Host {host.name}", _machine(host.name, machine))
    rows += _section("Config", dict(leaves(run.config)))
    rows += _section("Summary", dict(leaves(run.summary)))
    rows += _section("Problems", {str(number): text for number, text in enumerate(run.problems, 1)})
    return rows


def _failure(run: Run, printed: Sequence[ConsoleText]) -> list[Row]:
    """Return why the run failed, and the process that failed first."""
    failure = failure_of(run, printed, redaction.text)
    if failure is None:
        return []
    facts = {} if failure.rank is None else {"First failed": f"rank {failure.rank} on {failure.host}"}
    if failure.hint is not None:
        facts["Output"] = failure.hint
    return [[("Why ", "dim"), (inert(failure.title)[:_MAX_LETTERS], "bad")], *_facts(facts)]


def ending(run: Run) -> str:
    """Return the state of a run and why it ended.

    Example:
        'crashed (SIGKILL, out of memory)'
    """
    reasons = []
    if run.signal is not None:
        reasons.append(signal_name(run.signal))
    elif run.exit_code:
        reasons.append(f"exit code {run.exit_code}")
    if run.out_of_memory:
        reasons.append("out of memory")
    return f"{run.state} ({', '.join(reasons)})" if reasons else run.state


def moment(ms: int) -> str:
    """Return a time of this terminal's time zone; the number itself if it is out of the calendar's range."""
    try:
        return f"{datetime.fromtimestamp(ms // 1000, timezone.utc).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def _machine(host: str, machine: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: machine[name] for name in _MACHINE if machine.get(name) not in (None, "")}
    models: dict[str, int] = {}
    for device in devices_of(host, machine):
        models[device.model or device.identity] = models.get(device.model or device.identity, 0) + 1
    if models:
        facts["devices"] = ", ".join(f"{count} × {name}" for name, count in models.items())
    return facts


def _section(title: str, values: Mapping[str, Any]) -> list[Row]:
    if not values:
        return []
    return [[("", "")], [(inert(title), "title")], *_facts(values)]


def _facts(values: Mapping[str, Any]) -> Iterator[Row]:
    for label, value in values.items():
        text = value if isinstance(value, str) else json.dumps(finite(value), ensure_ascii=False, default=str)
        if text:
            yield [(f"{inert(label)} ", "dim"), (inert(text[:_MAX_LETTERS]), "")]
