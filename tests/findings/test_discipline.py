"""What rules of hangs, idleness and ranks must not do, and how their findings grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from runvitals.findings.finding import Finding, Findings
from runvitals.findings.judge import judge
from runvitals.findings.observation import observe
from runvitals.findings.training import LoggedColumn, LoggedTraining, training_of
from runvitals.findings.windows import TimeWindows
from tests.findings.workloads.workload import HOUR, MINUTE, START_MS, Workload

Pauses = Sequence[tuple[float, float]]


def trained(
    duration_s: float = 4 * HOUR,
    *,
    pauses: Pauses = (),
    load: float = 0.0,
    watts: float | None = None,
    gpus: int = 4,
    hosts: int = 1,
    until_s: float = 1e9,
    cpu: float = 20.0,
) -> Workload:
    """Make a training with pauses between its steps, in which its devices have some load."""
    run = Workload("trained", duration_s, 10, hosts=hosts)
    inside = run.between(*pauses, (until_s, 1e9))
    for number in range(hosts):
        for index in range(gpus):
            power = None if watts is None else np.where(inside, watts, 610)
            run.gpu(f"node{number}", index, np.where(inside, load, run.busy(96, 2)), watts=power)
        run.host(f"node{number}", np.where(inside, cpu, 20))
    run.steps(MINUTE, min(until_s, duration_s), 1, every=10, pauses=pauses)
    return run


def found(findings: Findings, name: str) -> Finding | None:
    """The finding of an id; None without."""
    return next((each for each in findings.findings if each.id == name), None)


def accused(findings: Findings) -> set[str]:
    """The ids of findings that accuse."""
    return {each.id for each in findings.findings if each.severity != "info"}


def everywhere(run: Workload, every_s: float = 3 * MINUTE, from_s: float = 0.0) -> set[str]:
    """The ids of what is accused at any moment of a run, and at its end."""
    moments = np.arange(from_s + every_s, run.duration_s, every_s)
    return accused(judge(run.run())).union(*(accused(judge(run.run(at))) for at in moments))


@pytest.mark.parametrize("minutes", [6, 9, 12])
@pytest.mark.parametrize("load", [0.0, 50.0])
@pytest.mark.parametrize("cpu", [1.0, 20.0])
def test_an_unmarked_pause_of_some_minutes_is_no_finding(minutes: float, load: float, cpu: float) -> None:
    pauses = [(begin * HOUR, begin * HOUR + minutes * MINUTE) for begin in (1, 2.3)]
    run = trained(3 * HOUR, pauses=pauses, load=load, cpu=cpu, gpus=2)
    assert everywhere(run, 5 * MINUTE, from_s=HOUR) == set()


def test_a_marked_validation_is_no_hang_while_it_goes_on_either() -> None:
    run = trained(pauses=[(2 * HOUR, 2 * HOUR + 40 * MINUTE)], gpus=2)
    run.mark(2 * HOUR, "validation begins")
    run.mark(2 * HOUR + 40 * MINUTE, "validation ends")
    assert everywhere(run, 5 * MINUTE) == set()


@pytest.mark.parametrize("load", [30.0, 55.0, 96.0])
def test_a_long_step_in_which_devices_work_is_no_hang(load: float) -> None:
    assert "hang" not in everywhere(trained(until_s=2 * HOUR, load=load), 10 * MINUTE)


def test_a_pause_that_ended_is_not_critical() -> None:
    pauses = [(HOUR, HOUR + 20 * MINUTE)]
    run = trained(pauses=pauses, cpu=0.2)
    live = found(judge(run.run(HOUR + 18 * MINUTE)), "hang")
    assert live is not None
    assert live.to_ms is None
    after = found(judge(run.run()), "hang")
    assert after is not None
    assert (after.severity, after.from_ms) == ("info", live.from_ms)
    assert "then it went on" in after.text
    longer = found(judge(trained(pauses=[(HOUR, HOUR + 50 * MINUTE)], cpu=0.2).run()), "hang")
    assert longer is not None
    assert longer.severity == "warning"


def test_the_rank_that_the_others_wait_for_is_named() -> None:
    run = trained(until_s=2 * HOUR, load=100, watts=130, cpu=5)
    run.goes_on = True
    dead = run.t > 2 * HOUR
    for key, value in (("gpu", 0), ("powerWatts", 75)):
        run.series["node0"][f"gpu.2.{key}"][dead] = value
    hang = found(judge(run.run()), "hang")
    assert hang is not None
    assert "GPU 2 does nothing while the other 3 GPUs wait for it: look there first." in hang.text


def test_devices_that_spin_alike_hang_after_five_minutes() -> None:
    run = trained(until_s=2 * HOUR, load=100, watts=130, cpu=5)
    assert found(judge(run.run(2 * HOUR + 4 * MINUTE)), "hang") is None
    assert found(judge(run.run(2 * HOUR + 7 * MINUTE)), "hang") is not None


def test_without_steps_a_hang_is_only_possible() -> None:
    run = trained(until_s=2 * HOUR, load=100, watts=130)
    run.logged = {}
    run.goes_on = True
    hang = found(judge(run.run()), "hang")
    assert hang is not None
    assert hang.confidence == "possible"


def test_utilisation_alone_does_not_tell_a_hang() -> None:
    run = trained(until_s=2 * HOUR, load=100)
    run.goes_on = True
    run.series["node0"] = {
        key: column
        for key, column in run.series["node0"].items()
        if not key.startswith("gpu.") or key.endswith(".gpu")
    }
    findings = judge(run.run())
    assert accused(findings) == set()
    assert "hang" in {each.id for each in findings.undecided}


def test_missing_utilisation_is_not_idleness() -> None:
    run = trained()
    for index in range(4):
        del run.series["node0"][f"gpu.{index}.gpu"]
    run.logged = {}
    findings = judge(run.run())
    undecided = {each.id: each for each in findings.undecided}
    assert {"hang", "idle", "idle_devices", "straggler"} <= set(undecided)
    assert all(each.needs and each.why for each in undecided.values())


def test_what_is_broken_leads_before_the_hang_that_follows() -> None:
    run = trained(until_s=2 * HOUR, load=100, watts=130, gpus=8)
    run.goes_on = True
    run.put("node0", "gpu.5.recoveryAction", np.where(run.t > 2 * HOUR, 1, 0))
    findings = judge(run.run())
    assert findings.verdict == "device_needs_reset"
    assert "hang" in accused(findings)


def test_swapping_leads_before_the_memory_that_is_full() -> None:
    run = trained(gpus=1)
    late = run.t > 2 * HOUR
    swapped = np.where(late, np.clip((run.t - 2 * HOUR) / HOUR, 0, 1) * 40 * 2**30, 0)
    percent = np.where(late, 97, 60)
    run.host("node0", 20, mem=percent, swap=swapped, mem_psi=np.where(late, 55, 0))
    assert judge(run.run()).verdict == "swapping"


@pytest.mark.parametrize("seconds", [10.0, 30.0])
def test_what_differs_for_a_moment_is_no_straggler(seconds: float) -> None:
    run = trained(gpus=8)
    moment = run.between((HOUR, HOUR + seconds))
    run.series["node0"]["gpu.3.smClock"][moment] = 600
    assert everywhere(run, 20 * MINUTE) == set()


def test_half_of_the_hosts_can_be_slow() -> None:
    run = trained(gpus=4, hosts=4)
    for number in (0, 1):
        for index in range(4):
            run.series[f"node{number}"][f"gpu.{index}.smClock"][:] = 1300
    slow = found(judge(run.run()), "straggler")
    assert slow is not None
    assert slow.hosts == ("node0", "node1")
    assert "1300 MHz" in slow.text


def starting(minutes: float, cpu: float, duration_s: float = 3 * HOUR) -> Workload:
    """Make a training whose devices do nothing at first."""
    run = Workload("starting", duration_s, 10)
    waits = run.t < minutes * MINUTE
    for index in range(4):
        run.gpu("node0", index, np.where(waits, 0, run.busy(96, 2)), used=np.where(waits, 0.6, 80))
    run.host("node0", np.where(waits, cpu, 20))
    run.steps(minutes * MINUTE, duration_s, 2)
    return run


@pytest.mark.parametrize("cpu", [0.3, 2.0, 60.0])
def test_twenty_minutes_are_granted_to_a_start(cpu: float) -> None:
    assert everywhere(starting(18, cpu, 1.2 * HOUR)) == set()


def test_a_start_that_takes_longer_is_a_slow_start_while_it_goes_on_too() -> None:
    assert everywhere(starting(50, 2.0, 2 * HOUR)) == {"slow_start"}


def test_a_notebook_that_rests_between_bursts_is_information() -> None:
    run = Workload("notebook", 6 * HOUR, 15)
    works = run.t % (40 * MINUTE) < 10 * MINUTE
    run.gpu("node0", 0, np.where(works, run.busy(70, 10), 0), keys="wandb")
    run.host("node0", np.where(works, 10, 0.3), keys="wandb")
    findings = judge(run.run(5 * 40 * MINUTE + 5 * MINUTE))
    idle = found(findings, "idle")
    assert idle is not None
    assert (idle.severity, idle.confidence) == ("info", "possible")
    assert findings.verdict == "healthy"


def steps_of(**columns: tuple[Sequence[float], Sequence[int]]) -> LoggedTraining:
    """The training that logged these times (s) and steps."""
    logged = {
        name.replace("__", "/"): LoggedColumn(
            (np.asarray(times) * 1000).astype(np.int64), np.asarray(steps), np.zeros(len(times))
        )
        for name, (times, steps) in columns.items()
    }
    return training_of(TimeWindows(0, 10_000, 1000), logged)


def test_steps_are_those_of_the_training() -> None:
    loss = (np.arange(0, 1000, 10), np.arange(100))
    beside = (np.arange(0, 9000, 5), np.arange(1800))
    unnumbered = (np.arange(0, 9000, 2), np.full(4500, -1))
    training = steps_of(
        train__loss=loss, heartbeat=beside, system__power=beside, note=unnumbered, val__loss=beside
    )
    assert training.steps_ms[-1] == 990_000
    assert steps_of(note=unnumbered).steps_ms[-1] == 8_998_000
    assert len(steps_of(epoch=loss, val__acc=([5.0], [1])).steps_ms) == 100


def test_a_step_that_stays_is_no_step_and_one_of_a_resumed_training_is() -> None:
    times = np.arange(0, 2000, 10)
    assert steps_of(loss=(times, np.minimum(np.arange(200), 99))).steps_ms[-1] == 990_000
    resumed = np.concatenate([np.arange(150), np.arange(20, 70)])
    assert len(steps_of(loss=(times, resumed)).steps_ms) == 200
    ranks = np.arange(200) // 2 - np.arange(200) % 2
    assert len(steps_of(loss=(times, np.maximum(ranks, 0))).steps_ms) == 100


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
def test_a_price_that_is_none_is_an_error(price: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number of 0 or more"):
        observe([], state="finished", started_ms=0, ended_ms=1, now_ms=1, price_per_device_hour=price)


@pytest.mark.parametrize("ended_s", [-600.0, 60.0, 2 * HOUR])
def test_shares_and_times_stay_in_bounds_if_the_end_lies_before_samples(ended_s: float) -> None:
    run = trained(until_s=HOUR, load=100, watts=130).run()
    run = type(run)(
        run.windows,
        run.hosts,
        run.training,
        "failed",
        run.started_ms,
        START_MS + int(ended_s * 1000),
        run.now_ms,
    )
    for finding in judge(run).findings:
        assert 0 <= finding.share <= 1
        assert finding.device_hours >= 0
        assert finding.to_ms is not None
        assert finding.to_ms >= finding.from_ms


def slow_device() -> Workload:
    """Make a training with one slow device for two hours."""
    run = trained(3 * HOUR, gpus=4)
    slow = run.between((HOUR, 2 * HOUR))
    run.series["node0"]["gpu.3.smClock"][slow] = 1000
    return run


def unused_devices() -> Workload:
    """Make a training that uses two of its four devices no more."""
    run = trained(4 * HOUR)
    late = run.t > HOUR
    for index in (1, 2):
        run.series["node0"][f"gpu.{index}.gpu"][late] = 0
        run.series["node0"][f"gpu.{index}.powerWatts"][late] = 75
    return run


def rests() -> Workload:
    """Make a run without steps whose devices do nothing for some time."""
    run = trained(4.5 * HOUR, pauses=[(HOUR, 2.5 * HOUR)], gpus=2)
    run.logged = {}
    return run


GROWING = {
    "hang": lambda: trained(4 * HOUR, until_s=HOUR, load=100, watts=130, cpu=5),
    "idle": rests,
    "straggler": slow_device,
    "idle_devices": unused_devices,
    "slow_start": lambda: starting(50, 2.0, 4 * HOUR),
}


@pytest.mark.parametrize(("name", "build"), GROWING.items(), ids=list(GROWING))
def test_a_finding_stays_once_it_is_open(name: str, build: Callable[[], Workload]) -> None:
    """One finding, whose begin stays, at each moment after it opened: it grows, then it closes."""
    run = build()
    begins, closed = [], False
    for at in np.arange(8 * MINUTE, run.duration_s, 10 * MINUTE):
        its = [each for each in judge(run.run(at)).findings if each.id == name]
        assert len(its) <= 1
        assert its or not begins, f"it disappears after {at / 60:.0f} min"
        if its:
            begins.append(its[0].from_ms)
            assert its[0].to_ms is not None or not closed
            closed = its[0].to_ms is not None
    assert begins
    assert max(begins) - min(begins) <= 60_000
