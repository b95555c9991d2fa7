"""What a run's own processes have to do with its delivery: where it goes, and a bounded wait at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from runvitals.journal.json_codec import dumps
from runvitals.sdk.data_folder import working_folder
from runvitals.sdk.messages import tell
from runvitals.sdk.settings import SETTINGS, resolve

# Beyond the relay's own limit, for its answer to come back.
_ANSWER_GRACE_S = 1.0


def destinations(values: Mapping[str, Any]) -> list[str]:
    """Where a run goes by its settings; nowhere unless `mode` is `online`."""
    if values["mode"] != "online":
        return []
    server = [values["server"]] if values["server"] else []
    return list(dict.fromkeys([*server, *values["destinations"]]))


def configured(to: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """(where a command delivers to: what it was told, else what the settings name; its environment).

    What credentials in the environment are for is judged by `RUNVITALS_DESTINATIONS`, which holds all that
    the settings name, and what the command was told of other kinds.

    Raises:
        SettingError: a setting that is not allowed.
    """
    named = destinations({**resolve({}, os.environ, working_folder()), "mode": "online"})
    kinds = {text.partition(":")[0] for text in named}
    known = [*named, *(text for text in to if text.partition(":")[0] not in kinds)]
    environ = {**os.environ, SETTINGS["destinations"].variable: dumps(known).decode()}
    return list(to) or named, environ


def wait_for_delivery(values: Mapping[str, Any], run_id: str, directory: str, say: bool) -> None:
    """Wait at most `delivery_timeout` seconds until all that was written is delivered.

    Args:
        say: whether to tell a person what was delivered; what was not is told in any case.
    """
    wanted = destinations(values)
    timeout_s = float(values["delivery_timeout"])
    if not wanted or not timeout_s:
        return
    message = {"op": "flush", "run": run_id, "timeout_s": timeout_s}
    try:
        from runvitals.monitor import relay_connection  # a run without a destination has no use for it

        answer = relay_connection.ask(directory, message, timeout_s + _ANSWER_GRACE_S)
    except (OSError, ImportError):  # the program has no descriptor left, for a module's file or a socket
        answer = None
    reports = {} if answer is None else {one["destination"]: one for one in answer["destinations"]}
    for destination in wanted:
        report = reports.get(destination)
        if report is None:
            tell(f"run {run_id} is not delivered to {destination} yet; `runvitals sync {run_id}` does it")
        elif not report["delivered"] or report["rejected"]:
            tell(_trouble(report))
        elif say:
            tell(f"delivered to {destination}: {_amount(report)}")


def _amount(report: Mapping[str, Any]) -> str:
    return f"{report['samples']} samples, {report['logs']} log() rows"


def _trouble(report: Mapping[str, Any]) -> str:
    why = f" ({report['error']})" if report["error"] else ""
    if report["delivered"]:
        return (
            f"delivered to {report['destination']}: {_amount(report)}; {report['rejected']} batches were "
            f"not accepted{why}"
        )
    return (
        f"not all of the run is delivered to {report['destination']} yet{why}: {_amount(report)} are there, "
        f"{report['left']} records are left; it goes on in the background, see `runvitals relay status`"
    )
