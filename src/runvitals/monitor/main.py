"""Where a monitor process begins. Started by `launch.py` as `python -I -S -E -c "…; main()"` with three open
descriptors.
"""

from __future__ import annotations

import _signal
import gc
import os
import sys
import time

from runvitals.collectors import sources
from runvitals.collectors.base import Scope
from runvitals.collectors.plumbing import cgroup
from runvitals.collectors.selection import Selection
from runvitals.journal import frames, paths
from runvitals.journal.clock import Clock
from runvitals.journal.json_codec import loads
from runvitals.journal.writer import JournalWriter
from runvitals.monitor.clients import Door
from runvitals.monitor.cpu_affinity import Placement
from runvitals.monitor.host_facts import Inquiry
from runvitals.monitor.loop import Monitor
from runvitals.monitor.oom_kills import MemoryKills
from runvitals.monitor.predecessor import Predecessor
from runvitals.monitor.processes import handed_pidfd
from runvitals.monitor.sampler import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The descriptors a monitor is born with.
ORDER_FD = 3  # a file that holds the order: JSON, see `launch.connect`
DOOR_FD = 4  # the listening socket
TRAINER_FD = 5  # a pidfd of the process that started us, or nothing
# Kinder than the training it watches, but not idle: SCHED_IDLE costs 30 to 50 ms of jitter on a busy machine.
NICE = 5


def main() -> None:
    """Run a monitor to its end."""
    _leave_the_trainer_alone()
    order = _read_order()
    # Before anything of ours is opened, which would get that number where nothing was handed to us.
    pidfd = handed_pidfd(TRAINER_FD, int(order["attach"]["pid"]))
    journal = _begin_journal(order)
    try:
        _watch(build(order, journal), order, pidfd)
    except Exception as error:
        # Nobody sees our stderr. The journal is where a person looks.
        text = f"the monitor failed: {type(error).__name__}: {error} ({_place(error)})"
        event = {"t": journal.clock.now_ms(), "name": "monitor_failed", "level": "error", "text": text}
        journal.json(frames.EVENT, event)
        raise


def _watch(monitor: Monitor, order: dict[str, Any], pidfd: int) -> None:
    attach = order["attach"]
    monitor.attach(int(attach["pid"]), attach, pidfd)
    monitor.mind_relay(time.monotonic())
    monitor.sample(time.monotonic())
    monitor.schedule.advance(time.monotonic())
    _inquire(monitor, order)
    # What is here now stays: the garbage collector need not walk through it again and again, which would
    # bring megabytes into a cache that is cold at every tick.
    gc.collect()
    gc.freeze()
    monitor.run()


def _leave_the_trainer_alone() -> None:
    """No signal meant for the job ends us before the job's end is written; no descriptor of it is kept open;
    no CPU is fought over.
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
        return  # a container may forbid either; neither is needed


def _read_order() -> dict[str, Any]:
    with open(ORDER_FD, "rb", buffering=0) as file:
        order: dict[str, Any] = loads(file.readall())
    return order


def _place(error: Exception) -> str:
    """File and line where an error was raised, without the `traceback` module."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def build(order: dict[str, Any], journal: JournalWriter) -> Monitor:
    """A monitor as the order describes it, with all collectors that find something here."""
    settings = order["settings"]
    interval_s = float(settings["sampling_interval"])
    scope = Scope(
        host_root=settings["host_root"],
        pids=[int(order["attach"]["pid"])],
        process_tree=settings["process_tree"],
        disk_paths=settings["disk_paths"],
        interval_s=interval_s,
        options=order["options"],
    )
    predecessor = Predecessor.find(journal.folder, order["host"], journal.writer)
    selection = Selection(settings["collectors"])
    found = sources.probe_all(scope, selection, order["site"])
    baselines = predecessor.baselines(order["boot_id"])
    sampler = Sampler(found.collectors, interval_s, Reporter(journal), settings["gpu_ids"], baselines)
    memory_kills = MemoryKills(cgroup.OomKills(scope))
    monitor = Monitor(journal, Door(DOOR_FD), sampler, scope, interval_s, memory_kills)
    monitor.placement = Placement.of_this_process()
    if order["destinations"]:
        from runvitals.monitor.relay_connection import RelayLine  # most runs have no use for it

        where = order["destinations"]
        monitor.relay = RelayLine(order["directory"], order["run"], where, order["trainer"]["cwd"])
    if predecessor.died_ms is not None:
        monitor.note(frames.LIFECYCLE, what="gap", since=predecessor.died_ms)
    monitor.note(frames.INFO, run=order["about"], settings=settings, sources=_told(found.states(selection)))
    return monitor


def _begin_journal(order: dict[str, Any]) -> JournalWriter:
    clock = Clock(order["clock_ms"])
    return JournalWriter(
        paths.run_dir(order["run"], order["directory"]),
        f"monitor.{paths.safe_name(order['host'])}.{clock.now_ms():x}",
        {
            "run": order["run"],
            "project": order["project"],
            "host": order["host"],
            "role": "monitor",
            "pid": os.getpid(),
            "interval_s": float(order["settings"]["sampling_interval"]),
            "boot_id": order["boot_id"],
            "labels": order["settings"]["labels"],
        },
        clock=clock,
    )


def _told(states: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What sources have to say, without what a URL among it may hold that is secret."""
    if any("://" in text for state in states.values() for text in state.values()):
        from runvitals.environment import redaction  # most machines have no such source

        for state in states.values():
            state.update({name: redaction.text(text) for name, text in state.items()})
    return states


class Reporter:
    """Writes down that a source began to fail, or works again."""

    __slots__ = ("_journal",)

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal

    def __call__(self, source: str, error: Exception | None) -> None:
        if error is None:
            event = {"name": "collector_recovered", "level": "info", "text": f"{source} works again"}
            state = {"state": "on"}
        else:
            from runvitals.environment import redaction  # only where something fails

            reason = redaction.text(f"{type(error).__name__}: {error}")
            event = {"name": "collector_failed", "level": "warning", "text": f"{source}: {reason}"}
            state = {"state": "failing", "reason": reason}
        now_ms = self._journal.clock.now_ms()
        self._journal.json(frames.EVENT, {"t": now_ms, "source": source, **event})
        self._journal.json(frames.INFO, {"t": now_ms, "sources": {source: state}})


def _inquire(monitor: Monitor, order: dict[str, Any]) -> None:
    """Have the facts about the machine gathered, once, beside the sampling; git's answer, which may take
    seconds, apart.
    """
    trainer = order["trainer"]

    def ask_machine() -> dict[str, Any]:
        from runvitals.environment import facts as environment
        from runvitals.environment import redaction

        facts = environment.facts(monitor.scope, int(order["attach"]["pid"]), trainer["cwd"], os.environ)
        program = {**trainer, "argv": redaction.command(trainer["argv"])}
        found: dict[str, Any] = redaction.entries({**facts, "program": program})
        return found

    def ask_git() -> dict[str, Any]:
        from runvitals.environment import git

        dirty = git.dirty(trainer["cwd"])
        return {} if dirty is None else {"git_dirty": dirty}

    _errand(monitor, ask_machine)
    _errand(monitor, ask_git)


def _errand(monitor: Monitor, ask: Callable[[], dict[str, Any]]) -> None:
    """Ask in a child, and keep the answer with what is known of the machine."""
    try:
        inquiry = Inquiry(ask)
    except OSError as error:  # no more processes, or descriptors, than there are
        monitor.warn("not_inquired", f"facts about the machine cannot be gathered: {error.strerror}")
        return
    monitor.errand(inquiry.fd, lambda: monitor.note(frames.INFO, machine=inquiry.answer()))


if __name__ == "__main__":
    sys.exit("the monitor is started by runvitals.init() or `runvitals run`")
