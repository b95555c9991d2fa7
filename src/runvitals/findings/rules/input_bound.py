"""Devices that wait for their input, and what the input waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from runvitals.findings.finding import Confidence, Evidence
from runvitals.findings.host_load import (
    busy_disk,
    busy_network,
    busy_processors,
    is_throttled,
    network_rates,
    pressure,
    read_rate,
)
from runvitals.findings.observed_run import ObservedHost, ObservedRun, mean_of
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    evidence,
    joined,
    seconds_of,
)
from runvitals.findings.spans import Span, above, below, find_spans, known, mask_of, median
from runvitals.findings.training import data_wait_share
from runvitals.findings.windows import Bools, Floats

MIN_SHARE = 0.10
"""Of the training's time (TraceML: a share of 10 % is a warning)."""

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
    said = data_wait_share(run.training)
    if said is not None:
        where = run.training_windows & above(said, MIN_SHARE)
        return Wait(where, known(said), said, True)
    telling = [device for device in host.devices if device.has("busy")]
    if not telling:
        return None
    work = mean_of([device.work for device in telling], run.windows.count)
    steps = run.training.steps_per_window()
    going_on = above(work, 0.03) | (steps > 0)
    where = run.training_windows & below(work, 0.75) & going_on & ~of_checkpoints(run)
    return Wait(where, known(work), 1 - np.nan_to_num(work, nan=1.0), False)


def of_checkpoints(run: ObservedRun) -> Bools:
    """The windows of checkpoints and validations that were marked, and the next."""
    marked = run.training.is_marked("checkpoint", "valid", "eval")
    return np.asarray(marked | np.concatenate([[False], marked[:-1]]), dtype=np.bool_)


Cause = Callable[[ObservedHost], tuple[Bools, list[str]]]


def _cpu_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    busy, key = busy_processors(host)
    cpu_pressure, pressure_key = pressure(host, "cpu")
    if pressure_key and host.columns.has("cpu"):
        pressed = above(cpu_pressure, 60) & above(host.columns.mean("cpu"), 70)
        busy = busy | pressed
    single = _one_thread(host)
    if not busy.any() and single.any():
        return single & ~is_throttled(host), [key]
    return busy & ~is_throttled(host), [key, *([pressure_key] if pressure_key else [])]


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
    say: Callable[[ObservedRun, ObservedHost, list[Span]], str],
) -> Judgement:
    """Find hosts whose devices wait while one cause holds.

    Args:
        needs: keys of which the cause needs one.
    """
    occurrences: list[Occurrence] = []
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
        both = wait.where & holds
        training_windows = max(int(run.training_windows.sum()), 1)
        spans = find_spans(both, wait.decidable & run.training_windows, min_windows=2, close_windows=3)
        covered = sum(int(both[span.slice].sum()) for span in spans)
        if covered < MIN_SHARE * training_windows or covered < run.windows.number(60):
            continue
        # The wait must be explained by the cause, not only meet it now and then.
        waits = max(int(wait.where.sum()), 1)
        if covered < 0.5 * waits:
            continue
        lost = float(np.nansum(wait.share[mask_of(spans, run.windows.count)])) * run.windows.width_s
        if lost / (training_windows * run.windows.width_s) < MIN_SHARE / 2:
            continue
        occurrences.append(_occurrence(run, host, spans, keys, wait, lost, say(run, host, spans)))
    if not has_wait:
        return Abstention(
            "neither a device's utilisation nor the training tells whether it waits for data", BUSY_KEYS
        )
    if not has_load:
        return Abstention("the host's load is unknown, so what the devices wait for is unknown", tuple(needs))
    return joined(_of_all_hosts(occurrences, run), run)


def _occurrence(
    run: ObservedRun,
    host: ObservedHost,
    spans: list[Span],
    keys: list[str],
    wait: Wait,
    lost: float,
    text: str,
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
    share = seconds_of(spans, run.windows) * 1000 / run.duration_ms
    return Occurrence(
        "critical" if lost * 1000 > 0.4 * run.duration_ms else "warning",
        confidence,
        spans,
        text,
        proof,
        host.devices,
        [host.name],
        lost * max(len(host.devices), 1 if not run.devices else 0),
        share=min(share, 1.0),
    )


def _of_all_hosts(occurrences: list[Occurrence], run: ObservedRun) -> list[Occurrence]:
    """Join what was found on several hosts: the same cause is one finding."""
    if len(occurrences) < 2:
        return occurrences
    worst = max(occurrences, key=lambda each: each.cost_s)
    return [
        Occurrence(
            worst.severity,
            worst.confidence,
            worst.spans,
            worst.text,
            worst.evidence,
            [device for each in occurrences for device in each.devices],
            [host for each in occurrences for host in each.hosts],
            sum(each.cost_s for each in occurrences),
            share=worst.share,
        )
    ]


def _has(host: ObservedHost, key: str) -> bool:
    if "{" not in key:
        return host.columns.has(key)
    begin, _, end = key.partition("{")[0], "", key.rpartition("}")[2]
    return any(each.startswith(begin) and each.endswith(end) for each in host.columns.columns)


def _who(run: ObservedRun, host: ObservedHost) -> str:
    return f"The {host.devices[0].plural}" if host.devices else "The training"


def _verb(host: ObservedHost) -> str:
    return "wait" if host.devices else "waits"


def _say_cpu(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> str:
    where = mask_of(spans, run.windows.count)
    processes = median(host.columns.mean("proc.count"), where)
    cpus = host.cpus
    busy = median(host.columns.mean("cpu"), where)
    if cpus and busy < 60:
        workers = "one thread of each process prepares the data"
        return f"{_who(run, host)} {_verb(host)} for the data loader: {workers}."
    workers = f"its {processes:.0f} processes use" if processes > 1 else "it uses"
    total = f"all {cpus:.0f} processors" if cpus else "all processors"
    return f"{_who(run, host)} {_verb(host)} for the data loader: {workers} {total}."


def _say_disk(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> str:
    rate = median(read_rate(host), mask_of(spans, run.windows.count))
    tail = f" at {rate:.0f} MiB/s" if rate >= 1 else ""
    return f"{_who(run, host)} {_verb(host)} for data that is read from disk{tail}."


def _say_network(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> str:
    rate = median(network_rates(host)[0], mask_of(spans, run.windows.count))
    return f"{_who(run, host)} {_verb(host)} for data that comes over the network at {rate:.0f} MiB/s."


def _network_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    full, keys = busy_network(host)
    processors, _ = busy_processors(host)
    disk, _ = busy_disk(host)
    return full & ~processors & ~disk, keys


def _disk_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    disk, keys = busy_disk(host)
    processors, _ = busy_processors(host)
    return disk & ~processors, [*keys]


def judge_cpu(run: ObservedRun) -> Judgement:
    """Find devices that wait for processors, or for a loader that is slow by itself."""
    judgement = judge(run, _cpu_cause, ("cpu", "cpu.ofLimit", "cpu.mean"), _say_cpu)
    if isinstance(judgement, Abstention) or judgement or data_wait_share(run.training) is None:
        return judgement
    explained = [judge_disk(run), judge_network(run)]
    if any(not isinstance(each, Abstention) and each for each in explained):
        return judgement
    return judge(run, _no_cause, ("cpu", "cpu.ofLimit", "cpu.mean"), _say_loader)


def _no_cause(host: ObservedHost) -> tuple[Bools, list[str]]:
    busy, key = busy_processors(host)
    return ~busy & ~is_throttled(host), [key]


def _say_loader(run: ObservedRun, host: ObservedHost, spans: list[Span]) -> str:
    return (
        f"{_who(run, host)} {_verb(host)} for the data loader, though processors, disks and network have "
        "room: "
        "it has too few workers, or they wait for something else."
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
        "Ask for more processors, use more workers if some are free (num_workers), move decoding and "
        "augmentation to the devices "
        "(DALI, torchvision v2 on GPU), or store the data prepared (WebDataset, FFCV, pre-tokenised).",
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
