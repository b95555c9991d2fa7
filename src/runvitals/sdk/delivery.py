"""The configured destinations of a run, and the bounded wait for delivery when it finishes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.base.terminal_text import inert
from runvitals.model import destination_kinds
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.setting_definition import SettingError
from runvitals.monitoring.settings.settings import SETTINGS, resolve
from runvitals.sdk.data_folder import working_folder

# Added to the relay's own timeout, for its response to arrive.
_RESPONSE_GRACE_S = 1.0
_FOLLOW_GRACE_S = 10.0


def destinations(values: Mapping[str, Any]) -> list[str]:
    """Return the destinations of a run; empty unless `mode` is `online`."""
    if values["mode"] != "online":
        return []
    server = [values["server"]] if values["server"] else []
    return list(dict.fromkeys([*server, *values["destinations"]]))


def check_kinds(values: Mapping[str, Any], origin: str) -> None:
    """Check that a run's destinations are of known kinds.

    Args:
        values: the resolved settings.
        origin: where the setting `destinations` was set.

    Raises:
        SettingError: an unknown kind; the text lists the known ones.
    """
    for destination in destinations(values):
        try:
            destination_kinds.check(destination.partition(":")[0])
        except ValueError as error:
            raise SettingError(f"invalid setting destinations ({inert(origin)}): {error}") from None


def configured_destinations(to: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the destinations of a command, `to` or else those of the settings, and its environment.

    In that environment `RUNVITALS_DESTINATIONS` lists all configured destinations, and those of `to` of any
    other kind. It decides which destination a credential in the environment belongs to.

    Raises:
        SettingError: invalid setting.
    """
    texts = destinations({**resolve({}, os.environ, working_folder()), "mode": "online"})
    kinds = {text.partition(":")[0] for text in texts}
    all_destinations = [*texts, *(text for text in to if text.partition(":")[0] not in kinds)]
    environ = {**os.environ, SETTINGS["destinations"].variable: dumps(all_destinations).decode()}
    return list(to) or texts, environ


def wait_for_delivery(values: Mapping[str, Any], run_id: str, directory: str, say: bool) -> None:
    """Wait at most `delivery_timeout` seconds until everything written so far is delivered.

    Args:
        say: print what was delivered. What was not delivered is always printed.
    """
    expected = destinations(values)
    timeout_s = float(values["delivery_timeout"])
    if not expected or not timeout_s:
        return
    message = {"op": "flush", "run": run_id, "timeout_s": timeout_s}
    try:
        from runvitals.monitoring.monitor import (
            relay_connection,  # runs without a destination need not import it
        )

        response = relay_connection.ask(directory, message, timeout_s + _RESPONSE_GRACE_S)
    except (OSError, ImportError):  # the process is out of file descriptors
        response = None
    reports = {} if response is None else {entry["destination"]: entry for entry in response["destinations"]}
    for destination in expected:
        report = reports.get(destination)
        if report is None:
            notify(f"run {run_id} is not delivered to {destination} yet; run `runvitals sync {run_id}`")
        elif not report["delivered"] or report["rejected"]:
            notify(_problem(report))
        elif say:
            notify(f"delivered to {destination}: {_amount(report)}")


def upload_report(server: str, run_id: str, directory: str) -> dict[str, Any] | None:
    """Let the relay deliver for a second; return what it says about a server, or None without a response.

    `uploads` says how much of the files that it is uploading has arrived; None: it uploads none.
    """
    from runvitals.monitoring.monitor import relay_connection

    message = {"op": "flush", "run": run_id, "timeout_s": 1.0}
    response = relay_connection.ask(directory, message, 1.0 + _FOLLOW_GRACE_S)
    reports = () if response is None else response["destinations"]
    return next((report for report in reports if report["destination"] == server), None)


def _amount(report: Mapping[str, Any]) -> str:
    return f"{report['samples']} samples, {report['logs']} log() rows"


def _problem(report: Mapping[str, Any]) -> str:
    why = f" ({report['error']})" if report["error"] else ""
    if report["delivered"]:
        return (
            f"delivered to {report['destination']}: {_amount(report)}; {report['rejected']} batches were "
            f"rejected{why}"
        )
    return (
        f"the run is not fully delivered to {report['destination']} yet{why}: {_amount(report)} delivered, "
        f"{report['left']} records left; delivery continues in the background, see `runvitals relay status`"
    )
