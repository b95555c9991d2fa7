"""Devices that wait for their input, and what the input waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from runvitals.findings.finding import Confidence, Evidence
from runvitals.findings.host_load import (
    busy_disk,
    busy_network,
    busy_processors,
    is_throttled,
    network_files,
    network_rates,
    pressure,
    read_rate,
)
from runvitals.findings.observed_run import ObservedHost, ObservedRun, mean_of
from runvitals.findings.persistence import persisting, recurrences
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    evidence,
    seconds_of,
)
from runvitals.findings.spans import Span, above, below, known, mask_of, median
from runvitals.findings.training import data_wait_share
from runvitals.findings.windows import Bools, Floats

MIN_SHARE = 0.10
"""Of the training's time (TraceML: a share of 10 % is a warning)."""
LEAK = 0.5
"""Loaders that fill their queues in bursts let devices wait in a third of the windows or more."""
USED = 0.05
"""A device that does not reach this for ten minutes is not used, and waits for nothing."""
USED_S = 600.0

CPU_KEYS = ("cpu", "cpu.ofLimit", "cpu.mean")
BUSY_KEYS = ("gpu.{i}.gpu", "gpu.{i}.smActive", "tpu.{i}.dutyCycle", "trn.{core}.neuroncore_utilization")


@dataclass(frozen=True, slots=True)
class Wait:
    """Where the devices of a host wait.

    Args:
        where: the windows.
        decidable: the windows of which it is known.
        share: how much of each window is lost, 0 to 1.
        is_certain: the training itself says that it waits for data.
    """

    where: Bools
    decidable: Bools
    share: Floats
    is_certain: bool


def wait_of(run: ObservedRun, host: ObservedHost) -> Wait | None:
    """Return where a host's devices wait during the training; None if nothing tells."""
    share = data_wait_share(run.training)
    if share is not None:
        where = run.training_so_far & above(share, MIN_SHARE)
        return Wait(where, known(share), share, True)
    telling = [device for device in host.devices if device.has("busy")]
    if not telling:
        return None
    work = mean_of([device.work for device in telling], run.windows.count)
    in_use = recently(above(work, USED), run.windows.number(USED_S))
    where = run.training_so_far & below(work, 0.75) & in_use & ~of_checkpoints(run) & ~pauses_of_steps(run)
    return Wait(where, known(work), 1 - np.nan_to_num(work, nan=1.0), False)


def recently(holds: Bools, count: int) -> Bools:
    """Return the windows with one in which it holds among the last `count`."""
    total = np.concatenate([np.zeros(count, dtype=np.int64), np.cumsum(holds)])
    return np.asarray(total[count:] - total[: len(holds)] > 0)


def pauses_of_steps(run: ObservedRun) -> Bools:
    """The windows of single pauses of the steps: validations, checkpoints and compilations nobody marked.

    A pause takes a minute or more, and five times as long as the steps before it and the one after it.
    """
    inside = np.zeros(run.windows.count, dtype=np.bool_)
    steps_ms = run.training.steps_ms
    if len(steps_ms) < 8:
        return inside
    times_ms = np.append(steps_ms, max(run.now_ms, int(steps_ms[-1])))
    gaps = np.diff(times_ms).astype(np.float64)
    for step in np.flatnonzero(gaps >= 60_000):
        before = gaps[max(step - 6, 0) : step]
        is_last = step == len(gaps) - 1
        after = before if is_last else gaps[step + 1 : step + 2]
        if len(before) >= 3 and gaps[step] >= 5 * max(float(np.median(before)), float(after[0])):
            begin, end = run.windows.index(int(times_ms[step])), run.windows.index(int(times_ms[step + 1]))
            inside[begin : end + 1] = True
    return inside


def of_checkpoints(run: ObservedRun) -> Bools:
    """The windows of checkpoints and validations that were marked, and the next."""
    marked = run.training.is_marked("checkpoint", "valid", "eval")
    return np.asarray(marked | np.concatenate([[False], marked[:-1]]), dtype=np.bool_)


Cause = Callable[[ObservedHost], tuple[Bools, list[str]]]


_FEWER_CYCLES = (
    "Ask for more processors, move decoding and augmentation to the devices (DALI, torchvision v2 on GPU), "
    "or store the data prepared (WebDataset, FFCV, pre-tokenised)."
)
_MORE_WORKERS = (
    "Load the data with more workers, and let them prepare batches ahead (num_workers and prefetch_factor in "
    "PyTorch, num_parallel_calls and prefetch in tf.data). If that does not help, find what the workers wait "
    "for (py-spy dump): a lock, a remote service or many small files."
)


class Wording(NamedTuple):
    """What is said about a host whose devices wait; without advice, that of the rule."""

    text: str
    advice: str | None = None


Say = Callable[[ObservedRun, ObservedHost, list[Span]], Wording]


def _cpu_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    busy, key = busy_processors(host)
    cpu_pressure, pressure_key = pressure(host, "cpu")
    if pressure_key and host.columns.has("cpu"):
        pressed = above(cpu_pressure, 60) & above(host.columns.mean("cpu"), 70)
        busy = busy | pressed
    single = _one_thread(host) & ~busy_disk(host)[0] & ~network_files(host)[0]
    return (busy | single) & ~is_throttled(host), [key, *([pressure_key] if pressure_key else [])]


def _one_thread(host: ObservedHost) -> Bools:
    """Where each process of a rank uses one processor: a loader without workers."""
    cpus, columns = host.cpus, host.columns
    if not cpus or not columns.has("cpu") or not host.devices:
        return np.zeros(columns.windows.count, dtype=np.bool_)
    used = columns.mean("cpu") / 100 * cpus
    ranks = len(host.devices)
    dips = np.zeros(columns.windows.count, dtype=np.bool_)
    for device in host.devices:
        dips |= below(device.low("busy"), 10) & above(device.high("busy"), 40)
    with np.errstate(invalid="ignore"):
        return (used > 0.75 * ranks) & (used < 1.35 * ranks) & dips


def judge(
    run: ObservedRun,
    cause: Cause,
    needs: Sequence[str],
    say: Say,
) -> Judgement:
    """Find hosts whose devices wait while one cause holds.

    Args:
        needs: keys of which the cause needs one.
    """
    host_spans: list[tuple[tuple[ObservedHost, Wait, list[str]], list[Span]]] = []
    has_wait, has_load = False, False
    for host in run.hosts:
        wait = wait_of(run, host)
        if wait is None:
            continue
        has_wait = True
        if not any(_has(host, key) for key in needs):
            continue
        has_load = True
        holds, keys = cause(host)
        inside = wait.decidable & run.training_so_far
        spans = persisting(run, wait.where & holds & inside, inside, leak=LEAK)
        if spans:
            host_spans.append(((host, wait, keys), spans))
    if not has_wait:
        return Abstention(
            "neither a device's utilisation nor the training tells whether it waits for data", BUSY_KEYS
        )
    if not has_load:
        return Abstention("the host's load is unknown, so what the devices wait for is unknown", tuple(needs))
    return [_of_hosts(run, time, hosts, say) for time, hosts in recurrences(run, host_spans)]


def _of_hosts(
    run: ObservedRun,
    time: list[Span],
    members: Sequence[tuple[tuple[ObservedHost, Wait, list[str]], list[Span]]],
    say: Say,
) -> Occurrence:
    """Report what was found on several hosts: the same cause is one finding."""
    occurrences = []
    for (host, wait, keys), spans in members:
        lost = float(np.nansum(wait.share[mask_of(spans, run.windows.count)])) * run.windows.width_s
        occurrences.append(_occurrence(run, host, spans, keys, wait, lost, say(run, host, spans)))
    worst = max(occurrences, key=lambda each: each.cost_s)
    return replace(
        worst,
        spans=time,
        devices=[device for each in occurrences for device in each.devices],
        hosts=[host for each in occurrences for host in each.hosts],
        cost_s=sum(each.cost_s for each in occurrences),
        share=min(seconds_of(time, run.windows) * 1000 / run.duration_ms, 1.0),
    )


def _occurrence(
    run: ObservedRun,
    host: ObservedHost,
    spans: list[Span],
    keys: list[str],
    wait: Wait,
    lost: float,
    wording: Wording,
) -> Occurrence:
    proof: list[Evidence] = []
    for device in host.devices[:1]:
        proof += evidence(device.host, device.key("busy"), spans)
    for key in keys[:2]:
        match key:
            case "network.recv":
                proof += evidence(host.columns, key, spans, value=network_rates(host)[0], unit="MiB/s")
            case _ if key.endswith("pressureSeconds"):
                proof += evidence(
                    host.columns, key, spans, value=100 * host.columns.per_second(key), unit="%"
                )
            case _ if key.endswith("bwInExceeded"):
                proof += evidence(host.columns, key, spans, value=host.columns.growth(key))
            case _:
                proof += evidence(host.columns, key, spans)
    confidence: Confidence = "certain" if wait.is_certain else "likely"
    return Occurrence(
        "critical" if lost * 1000 > 0.4 * run.duration_ms else "warning",
        confidence,
        spans,
        wording.text,
        proof,
        host.devices,
        [host.name],
        lost * max(len(host.devices), 1 if not run.devices else 0),
        wording.advice,
    )


def _has(host: ObservedHost, key: str) -> bool:
    if "{" not in key:
        return host.columns.has(key)
    begin, _, end = key.partition("{")[0], "", key.rpartition("}")[2]
    return any(each.startswith(begin) and each.endswith(end) for each in host.columns.columns)


def _who(run: ObservedRun, host: ObservedHost) -> str:
    if not host.devices:
        return "The training"
    return f"The {host.devices[0].plural}" if len(run.devices) > 1 else host.devices[0].label


def _verb(run: ObservedRun, host: ObservedHost) -> str:
    return "wait" if host.devices and len(run.devices) > 1 else "waits"


def _say_cpu(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> Wording:
    where = mask_of(spans, run.windows.count)
    processes = median(host.columns.mean("proc.count"), where)
    cpus = host.cpus
    busy = median(host.columns.mean("cpu"), where)
    if cpus and busy < 60:
        return Wording(
            f"{_who(run, host)} {_verb(run, host)} for the data loader: one thread of each training process "
            f"prepares the data, while {100 - busy:.0f} % of the processors are free.",
            _MORE_WORKERS,
        )
    workers = f"its {processes:.0f} processes use" if processes > 1 else "it uses"
    total = f"all {cpus:.0f} processors" if cpus else "all processors"
    text = f"{_who(run, host)} {_verb(run, host)} for the data loader: {workers} {total}."
    return Wording(text, _FEWER_CYCLES)


def _say_disk(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> Wording:
    rate = median(read_rate(host), mask_of(spans, run.windows.count))
    if rate < 1:
        return Wording(
            f"{_who(run, host)} {_verb(run, host)} for files, and no local disk is read: they may lie on a "
            "file system that is mounted from elsewhere."
        )
    tail = f" at {rate:.0f} MiB/s" if rate >= 1 else ""  # unknown without counters of the disk
    return Wording(f"{_who(run, host)} {_verb(run, host)} for data that is read from disk{tail}.")


def _say_network(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> Wording:
    rate = median(network_rates(host)[0], mask_of(spans, run.windows.count))
    files, _ = network_files(host)
    of = " of a network file system" if files[mask_of(spans, run.windows.count)].mean() > 0.5 else ""
    return Wording(
        f"{_who(run, host)} {_verb(run, host)} for data{of} that comes over the network at {rate:.0f} MiB/s."
    )


def _network_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    full, keys = busy_network(host)
    files, file_keys = network_files(host)
    processors, _ = busy_processors(host)
    disk, _ = busy_disk(host)
    return (full | files) & ~processors & ~disk, [*keys, *file_keys[1:]]


def _disk_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    disk, keys = busy_disk(host)
    processors, _ = busy_processors(host)
    return disk & ~processors, [*keys]


def judge_cpu(run: ObservedRun) -> Judgement:
    """Find devices that wait for processors, or for a loader that is slow by itself."""
    if data_wait_share(run.training) is None:
        return judge(run, _cpu_cause, CPU_KEYS, _say_cpu)
    return judge(run, _loader_cause, CPU_KEYS, _say_loader)


def _loader_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    """Where the training says that it waits, and neither a disk, the network nor a quota explains it."""
    _, key = busy_processors(host)
    network, _ = _network_cause(host)
    disk, _ = _disk_cause(host)
    return ~network & ~disk & ~is_throttled(host), [key]


def _say_loader(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> Wording:
    busy, _ = _cpu_cause(host)
    if busy[mask_of(spans, run.windows.count)].mean() > 0.5:
        return _say_cpu(run, host, spans)
    return Wording(
        f"{_who(run, host)} {_verb(run, host)} for the data loader, though processors, disks and network are "
        "not fully used: it has too few workers, or they wait for something else.",
        _MORE_WORKERS,
    )


def judge_disk(run: ObservedRun) -> Judgement:
    """Find devices that wait while tasks wait for a disk."""
    return judge(
        run,
        _disk_cause,
        ("io.pressureSeconds", "io.pressureAvg10", "cpu.iowait", "disk.{dev}.utilization"),
        _say_disk,
    )


def judge_network(run: ObservedRun) -> Judgement:
    """Find devices that wait while the network receives as much as it can."""
    return judge(run, _network_cause, ("network.recv", "network.recvMBps"), _say_network)


RULES = (
    FindingRule(
        "input_bound_cpu",
        "The devices wait for processors that prepare data",
        "The data loader cannot prepare batches as fast as the devices use them: it uses all processors "
        "that it may use.",
        "During the training the devices work less than 75 % of the time while the run's processes use 85 "
        "% of their processors or "
        "more (SageMaker Debugger: CPUBottleneck), or one thread of each process is fully used; or the "
        "training logs its own time "
        "of waiting for data, 10 % of a step or more (TraceML).",
        f"If all processors are busy: {_FEWER_CYCLES} If processors are free: {_MORE_WORKERS}",
        BUSY_KEYS,
        judge_cpu,
        order=4,
    ),
    FindingRule(
        "input_bound_disk",
        "The devices wait for a disk",
        "Data is read from a disk that cannot give it as fast as the devices use it.",
        "During the training the devices work less than 75 % of the time while tasks wait for a disk that "
        "is read: I/O pressure of "
        "30 %, iowait of 25 % or a disk busy for 90 % of the time (SageMaker Debugger: IOBottleneck).",
        "Copy the data to a local NVMe disk before the training, read larger files in order (WebDataset, "
        "Parquet), keep what fits in memory.",
        BUSY_KEYS,
        judge_disk,
        order=4,
    ),
    FindingRule(
        "input_bound_network",
        "The devices wait for the network",
        "Data comes over a network that is used up to its limit, or up to what the provider allows.",
        "During the training the devices work less than 75 % of the time while the host receives steadily "
        "near the most that it ever "
        "received, 20 MiB/s or more, and sends much less; or the provider counts packets beyond its "
        "allowance.",
        "Cache the data on local disks, compress it, read from a bucket in the same region, or use a "
        "machine with a faster network.",
        BUSY_KEYS,
        judge_network,
        order=4,
    ),
)
