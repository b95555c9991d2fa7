"""Checks that a monitor starts, samples and finishes, with a short trial run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runvitals.journal.clock import RunClock
from runvitals.monitoring.monitor import launch
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.run_handle import open_run
from runvitals.sdk.attachment import monitor_spec
from runvitals.sdk.identity import new_run_id
from runvitals.tools.doctor.finding import Check

_INTERVAL_S = 0.1
_LASTS_S = 0.5
_END_TIMEOUT_S = 10.0
_IMPORT_TIMEOUT_S = 10.0


def findings(values: Mapping[str, Any]) -> Iterator[Check]:
    """Monitor a trial run for half a second, in a temporary folder, and read it back.

    Args:
        values: the settings. The trial run is never delivered.
    """
    folder = tempfile.mkdtemp(prefix="runvitals-doctor-")
    try:
        yield from _run({**values, "mode": "offline", "sampling_interval": _INTERVAL_S}, folder)
    finally:
        shutil.rmtree(folder)


def _run(values: Mapping[str, Any], folder: str) -> Iterator[Check]:
    run_id = f"doctor-{new_run_id()}"
    attach = {"pid": os.getpid(), "role": "train", "writer": "doctor"}
    began_s = time.monotonic()
    try:
        line = launch.connect(
            monitor_spec(values, run_id, folder, attach, ["runvitals", "doctor"], RunClock())
        )
    except launch.Unavailable as error:
        text = f"the monitor could not be started: {error}"
        hint = "without a monitor, log() is recorded but no system metrics are"
        yield Check("monitor", "start", "FAIL", text, hint)
        return
    began_ms = (time.monotonic() - began_s) * 1e3
    time.sleep(_LASTS_S)
    ended_s = time.monotonic()
    response = line.ask({"op": "finish", "pid": os.getpid(), "exit_code": 0}, _END_TIMEOUT_S)
    ended_ms = (time.monotonic() - ended_s) * 1e3
    line.close()
    if response is None:
        yield _explain_silence(run_id, folder)
        return
    yield from _judge(run_id, folder, f"started in {began_ms:.1f} ms, ended in {ended_ms:.1f} ms")


def _explain_silence(run_id: str, folder: str) -> Check:
    """Return the finding about a monitor that started but did not confirm the end, with its reason."""
    reader = RunReader(run_id, folder)
    try:
        reader.poll()
        why = "; ".join(event.text for event in reader.facts.events if event.level == "error")
    except FileNotFoundError:  # it failed before it created a journal
        why = ""
    text = f"the monitor started but does not respond: {why or _import_error() or 'reason unknown'}"
    return Check("monitor", "start", "FAIL", text, "reinstall runvitals for this Python interpreter")


def _import_error() -> str:
    """Return the error when importing the monitor, whose own stderr is discarded; "" without one."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    code = f"import sys; sys.path.append({source!r}); import runvitals.monitoring.monitor.main"
    command = [launch.python(), "-I", "-S", "-E", "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_IMPORT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.strip().rpartition("\n")[2]


def _judge(run_id: str, folder: str, took: str) -> Iterator[Check]:
    opened = open_run(run_id, folder)
    costs = {statistic.key: statistic for statistic in opened.statistics("monitor.*")}
    cost, memory = costs.get("monitor.sampleMs"), costs.get("monitor.rssMB")
    if opened.state != "finished" or cost is None or cost.mean is None:
        text = f"the monitor started, but its run is {opened.state} and has no samples"
        hint = "create a bundle with `runvitals doctor --bundle FILE` and report it"
        yield Check("monitor", "start", "FAIL", text, hint)
        return
    yield Check("monitor", "start", "PASS", f"{took}, {cost.n} samples")
    size = f", {memory.max:.1f} MiB of memory" if memory is not None and memory.max is not None else ""
    yield Check("monitor", "cost", "PASS", f"{cost.mean:.2f} ms of CPU per sample{size}")
    trouble = [event.text for event in opened.events if event.level != "info"]
    if trouble or opened.problems:
        yield Check("monitor", "records", "PARTIAL", "; ".join([*trouble, *opened.problems]))
