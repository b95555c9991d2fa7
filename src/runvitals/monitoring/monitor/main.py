"""Entry point of the monitor process.

`launch.py` starts it as `python -I -S -E -c "…; main()"` and passes it the descriptors that it needs.
"""

from __future__ import annotations

import _signal
import gc
import os
import sys
import time

from runvitals.base.json_codec import loads
from runvitals.journal import frames, paths
from runvitals.journal.clock import RunClock
from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.plumbing import cgroup
from runvitals.monitoring.collectors.selection import Selection
from runvitals.monitoring.monitor.clients import ClientConnection, Listener
from runvitals.monitoring.monitor.cpu_affinity import CpuAffinity
from runvitals.monitoring.monitor.forked_task import ForkedTask
from runvitals.monitoring.monitor.loop import Monitor
from runvitals.monitoring.monitor.oom_kills import OomKillDetector
from runvitals.monitoring.monitor.predecessor import Predecessor
from runvitals.monitoring.monitor.sampler import Sampler
from runvitals.monitoring.monitor.watched_processes import inherited_pidfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Inherited descriptors.
SPEC_FD = 3  # a file with the spec: JSON, see `launch.connect`
LISTENER_FD = 4  # the listening socket
CONNECTION_FD = 5  # the connection to the process that started the monitor
TRAINER_FD = 6  # a pidfd of the process to monitor, if one could be opened
# Lower than the training's priority, but not SCHED_IDLE, which costs 30 to 50 ms of jitter on a busy machine.
NICE = 5
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO in include/linux/proc_ns.h


def main() -> None:
    """Run a monitor until its run has ended."""
    _detach_from_trainer()
    spec = _read_spec()
    # Checked before anything is opened, because that would get the number of a missing pidfd.
    pidfd = inherited_pidfd(TRAINER_FD, int(spec["attach"]["pid"]))
    journal = _create_journal(spec)
    try:
        _run(build(spec, journal), spec, pidfd)
    except Exception as error:
        # The monitor's stderr goes nowhere, so failures are recorded in the journal.
        text = f"the monitor failed: {type(error).__name__}: {error} ({_location(error)})"
        event = {"t": journal.clock.now_ms(), "name": "monitor_failed", "level": "error", "text": text}
        journal.json(frames.EVENT, event)
        raise


def _run(monitor: Monitor, spec: dict[str, Any], pidfd: int) -> None:
    attach = spec["attach"]
    monitor.attach(int(attach["pid"]), attach, pidfd)
    monitor.add_client(ClientConnection(CONNECTION_FD, int(spec["starter"])))
    monitor.supervise_relay(time.monotonic())
    monitor.recorder.sample(time.monotonic())
    monitor.schedule.advance(time.monotonic())
    _gather_facts(monitor, spec)
    # Existing objects live as long as the process. Freezing them keeps the garbage collector from loading
    # megabytes into caches that are cold at every tick.
    gc.collect()
    gc.freeze()
    monitor.run()


def _detach_from_trainer() -> None:
    """Detach from the training process.

    Ignore signals that are meant for the job, so that its end can be recorded; close inherited descriptors;
    lower the priority.
    """
    for signal in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
        _signal.signal(signal, _signal.SIG_IGN)
    os.closerange(TRAINER_FD + 1, 4096)
    os.chdir("/")
    os.umask(0o077)
    try:
        os.nice(NICE)
        with open("/proc/self/comm", "w") as comm:
            comm.write("runvitals")
    except OSError:
        return  # a container may forbid either; neither is required


def _read_spec() -> dict[str, Any]:
    with open(SPEC_FD, "rb", buffering=0) as file:
        spec: dict[str, Any] = loads(file.readall())
    return spec


def _location(error: Exception) -> str:
    """File and line where an error was raised, without importing `traceback`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def build(spec: dict[str, Any], journal: JournalWriter) -> Monitor:
    """Create a monitor from its spec, with all collectors that find their source on this host."""
    settings = spec["settings"]
    interval_s = float(settings["sampling_interval"])
    scope = Scope(
        host_root=settings["host_root"],
        pids=[int(spec["attach"]["pid"])],
        process_tree=settings["process_tree"],
        disk_paths=settings["disk_paths"],
        interval_s=interval_s,
        options=spec["options"],
    )
    predecessor = Predecessor.find(journal.folder, spec["host"], journal.writer)
    selection = Selection(settings["collectors"])
    rare = [name for name in sources.RARE if name in selection]
    probed = sources.probe_all(scope, selection, spec["site"], absent_here(scope, rare) if rare else {})
    baselines = predecessor.baselines(spec["boot_id"])
    sampler = Sampler(probed.collectors, interval_s, SourceReporter(journal), settings["gpu_ids"], baselines)
    oom_kills = OomKillDetector(cgroup.OomKills(scope))
    monitor = Monitor(journal, Listener(LISTENER_FD), sampler, scope, interval_s, oom_kills)
    monitor.affinity = CpuAffinity.of_this_process()
    monitor.in_container = is_in_pid_namespace()
    monitor.earlier = predecessor.processes
    if spec["destinations"]:
        from runvitals.monitoring.monitor.relay_connection import (
            RelayConnection,  # most runs have no destination
        )

        cwd = spec["trainer"]["cwd"]
        monitor.relay = RelayConnection(spec["directory"], spec["run"], spec["destinations"], cwd)
    note = monitor.recorder.note
    if predecessor.died_ms is not None:
        note(frames.LIFECYCLE, what="gap", since=predecessor.died_ms)
    # The latest description wins. A monitor that starts slowly, or again, must not replace a newer one.
    journal.json(frames.INFO, {"t": spec["described_ms"], "run": spec["about"]})
    note(frames.INFO, settings=settings, sources=_redact(probed.states(selection)))
    return monitor


def absent_here(scope: Scope, names: list[str]) -> dict[str, str]:
    """Name the collectors among these that this machine lacks, with the reasons.

    They are probed in a forked child, because what a probe has imported stays in memory: 0.2 MB, although it
    found nothing.
    """

    def reasons() -> dict[str, Any]:
        probed = sources.probe_all(scope, names)
        present = {collector.name for collector in probed.collectors}
        return {name: reason for name, reason in probed.reasons.items() if name not in present}

    try:
        absent = ForkedTask(reasons).result()
    except OSError:  # the limit on processes or descriptors is reached: probe them in this process
        return {}
    return {name: reason for name, reason in absent.items() if name in names}


def is_in_pid_namespace() -> bool:
    """Return whether this process is in a PID namespace of its own, as in a container.

    The kernel then kills all its processes when the first one ends (pid_namespaces(7)). False if it is
    unknown.
    """
    try:
        return os.readlink("/proc/self/ns/pid") != _INITIAL_PID_NAMESPACE
    except OSError:
        return False


def _create_journal(spec: dict[str, Any]) -> JournalWriter:
    clock = RunClock(spec["clock_ms"])
    return JournalWriter(
        paths.run_dir(spec["run"], spec["directory"]),
        f"monitor.{paths.safe_name(spec['host'])}.{clock.now_ms():x}",
        {
            "run": spec["run"],
            "project": spec["project"],
            **({"entity": spec["entity"]} if spec.get("entity") else {}),
            "host": spec["host"],
            "role": "monitor",
            "pid": os.getpid(),
            "interval_s": float(spec["settings"]["sampling_interval"]),
            "boot_id": spec["boot_id"],
            "labels": spec["settings"]["labels"],
        },
        clock=clock,
    )


def _redact(states: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return the states of the sources, without secrets in URLs."""
    if any("://" in text for state in states.values() for text in state.values()):
        from runvitals.monitoring.environment import redaction  # few machines have such a source

        for state in states.values():
            state.update({name: redaction.text(text) for name, text in state.items()})
    return states


class SourceReporter:
    """Records that a source has failed, or works again."""

    __slots__ = ("_journal",)

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal

    def __call__(self, source: str, error: Exception | None) -> None:
        """Record the change."""
        if error is None:
            event = {"name": "collector_recovered", "level": "info", "text": f"{source} works again"}
            state = {"state": "on"}
        else:
            from runvitals.monitoring.environment import redaction  # only needed if a source fails

            reason = redaction.text(f"{type(error).__name__}: {error}")
            event = {"name": "collector_failed", "level": "warning", "text": f"{source} failed: {reason}"}
            state = {"state": "failing", "reason": reason}
        now_ms = self._journal.clock.now_ms()
        self._journal.json(frames.EVENT, {"t": now_ms, "source": source, **event})
        self._journal.json(frames.INFO, {"t": now_ms, "sources": {source: state}})


def _gather_facts(monitor: Monitor, spec: dict[str, Any]) -> None:
    """Gather facts about the machine in the background, once.

    Git runs separately because it may take seconds.
    """
    trainer = spec["trainer"]

    def machine_facts() -> dict[str, Any]:
        from runvitals.monitoring.environment import facts as environment
        from runvitals.monitoring.environment import redaction
        from runvitals.monitoring.environment.packages import packages

        facts = environment.facts(monitor.scope, int(spec["attach"]["pid"]), trainer["cwd"], os.environ)
        program = {**trainer, "argv": redaction.command(trainer["argv"], os.environ)}
        redacted: dict[str, Any] = redaction.entries({**facts, "program": program})
        installed = packages(spec["site"])  # not redacted: names such as "keyring" would lose their versions
        return {**redacted, "packages": installed} if installed else redacted

    def git_facts() -> dict[str, Any]:
        from runvitals.monitoring.environment import git

        dirty = git.dirty(trainer["cwd"])
        return {} if dirty is None else {"git_dirty": dirty}

    _record_in_background(monitor, machine_facts)
    _record_in_background(monitor, git_facts)


def _record_in_background(monitor: Monitor, facts: Callable[[], dict[str, Any]]) -> None:
    """Call `facts` in a forked child, and record the result as facts about the machine."""
    try:
        task = ForkedTask(facts)
    except OSError as error:  # the limit on processes or descriptors is reached
        text = f"could not gather facts about the machine: {error.strerror}"
        monitor.recorder.warn("facts_failed", text)
        return
    monitor.add_background_task(task.fd, lambda: monitor.recorder.note(frames.INFO, machine=task.result()))


if __name__ == "__main__":
    sys.exit("the monitor is started by runvitals.init() or `runvitals run`")
