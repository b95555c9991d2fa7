"""How the devices are used: by what they are bound, small kernels, communication, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from runvitals.findings.devices import Device
from runvitals.findings.host_load import network_rates, write_rate
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.persistence import persisting, recurrences
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    capitalised,
    evidence,
    names_of,
    seconds_of,
)
from runvitals.findings.spans import (
    Span,
    above,
    below,
    find_spans,
    known,
    mask_of,
    median,
    recurring_spans,
)
from runvitals.findings.windows import Bools, Floats

PROFILE_KEYS = ("gpu.{i}.smActive", "gpu.{i}.dramActive", "gpu.{i}.pipeTensorActive")

# Percent. The classes of KempnerPulse, which has them from NVIDIA's profiling counters:
# https://github.com/KempnerInstitute/kempnerpulse/blob/main/docs/classification.md
OCCUPIED, LOW_ACTIVE, LOW_DRAM, LOW_TENSOR = 60.0, 25.0, 25.0, 15.0
MEMORY_BOUND_DRAM, MEMORY_ACTIVE_DRAM = 50.0, 40.0
COMPUTE_ACTIVE, COMPUTE_TENSOR = 50.0, 15.0
MIN_TRAFFIC_MIB_S = 200.0
RECENT_S = 2 * 3600.0
"""A training changes: what is usual is what was in the last two hours."""


def _traffic(device: Device) -> tuple[Floats, str | None]:
    """MiB per second that a device exchanges with other devices, over the link that has most, and its key."""
    best, best_key, most = device.host.nothing(), None, 0.0
    columns: list[tuple[str, Floats]] = []
    key = device.key("nvlink")
    if key is not None:
        columns.append((key, device.host.per_second(key) / 2**20))
    for name in ("nvlink", "pcie"):
        sent, received = device.value(f"{name}TxBytes"), device.value(f"{name}RxBytes")
        both = 2 * np.minimum(sent, received) / 2**20
        columns.append((device.prefix + f"{name}TxBytes", both))
    for key, column in columns:
        middle = float(np.nanmedian(column)) if known(column).any() else 0.0
        if middle > most:
            best, best_key, most = column, key, middle
    return best, best_key


def _fabric(host: ObservedHost) -> tuple[Floats, str | None]:
    """MiB per second that a host exchanges with others, both ways, and the key that tells."""
    columns = host.columns
    best, best_key, most = columns.nothing(), None, 0.0
    for key in columns.columns:
        if key.startswith("network.ib.") and key.endswith(".xmitBytes"):
            twin = key.replace("xmitBytes", "recvBytes")
            both = 2 * np.minimum(columns.per_second(key), columns.per_second(twin)) / 2**20
        elif key.startswith("network.efa.") and key.endswith(".sent"):
            twin = key.replace(".sent", ".recv")
            both = 2 * np.minimum(columns.per_second(key), columns.per_second(twin)) / 2**20
        else:
            continue
        middle = float(np.nanmedian(both)) if known(both).any() else 0.0
        if middle > most:
            best, best_key, most = both, key, middle
    received, sent = network_rates(host)
    both = 2 * np.minimum(received, sent)
    middle = float(np.nanmedian(both)) if known(both).any() else 0.0
    if middle > most:
        best, best_key = both, "network.sent" if columns.has("network.sent") else "network.sentMBps"
    return best, best_key


def communicates(run: ObservedRun, host: ObservedHost) -> tuple[Bools, str | None, Floats]:
    """Return where a host's devices exchange much with others, the key that tells, and how much, MiB/s."""
    if len(run.devices) < 2:
        return np.zeros(run.windows.count, dtype=np.bool_), None, host.columns.nothing()
    fabric, fabric_key = _fabric(host)
    if len(run.hosts) > 1 and fabric_key is not None:
        busy = above(fabric, MIN_TRAFFIC_MIB_S / 4)
        if 2 * busy[run.training_windows].sum() > run.training_windows.sum():
            return busy, fabric_key, fabric
    best, best_key = host.columns.nothing(), None
    for device in host.devices[:1]:
        best, best_key = _traffic(device)
    return above(best, MIN_TRAFFIC_MIB_S), best_key, best


def _low_use(device: Device) -> tuple[Bools, Bools]:
    """Return where kernels run most of the time and use little of the chip, and where that is known."""
    occupied, active, dram, tensor = (device.mean(name) for name in ("occupied", "active", "dram", "tensor"))
    low = above(occupied, OCCUPIED) & below(active, LOW_ACTIVE)
    low &= ~above(dram, LOW_DRAM) & ~above(tensor, LOW_TENSOR)
    return low, known(occupied, active)


def _longest(
    run: ObservedRun, device: Device, where: Bools, decidable: Bools, min_s: float = 120.0
) -> list[Span]:
    """Return the spans of the training where a condition holds, if they are half of it or more."""
    inside = run.training_windows
    spans = find_spans(
        where & inside, decidable & inside, min_windows=run.windows.number(min_s), close_windows=3
    )
    covered = sum(int((where & inside)[span.slice].sum()) for span in spans)
    return spans if covered >= 0.4 * max(int((decidable & inside).sum()), 1) else []


def judge_launch(run: ObservedRun) -> Judgement:
    """Find devices that run small kernels one after another, launched by one busy thread."""
    telling = [device for device in run.devices if device.has("occupied", "active") and device.kind == "gpu"]
    if not telling:
        return Abstention("how much of the chip kernels use is unknown", PROFILE_KEYS[:1])
    small: list[tuple[Device, list[Span]]] = []
    for host in run.hosts:
        talks, _, _ = communicates(run, host)
        for device in telling:
            if device.host is not host.columns:
                continue
            low, decidable = _low_use(device)
            low &= ~talks & ~_draws_much(device)
            spans = _lasting(run, low, decidable)
            if spans:
                small.append((device, spans))
    return [_small_kernels(run, time, members) for time, members in recurrences(run, small)]


def _lasting(run: ObservedRun, where: Bools, decidable: Bools) -> list[Span]:
    inside = decidable & run.training_windows
    return persisting(run, where & inside, inside)


def _small_kernels(run: ObservedRun, time: list[Span], small: list[tuple[Device, list[Span]]]) -> Occurrence:
    """Report devices that run small kernels."""
    device, spans = small[0]
    devices = [each for each, _ in small]
    host = next(host for host in run.hosts if host.columns is device.host)
    where = mask_of(spans, run.windows.count)
    thread = ""
    if host.cpus and device.host.has("cpu"):
        used = median(device.host.mean("cpu"), where) / 100 * host.cpus / max(len(host.devices), 1)
        if 0.6 <= used <= 1.6:
            thread = ", while one thread of each process does nothing but launch them"
    active = median(device.mean("active"), where)
    seconds = sum(seconds_of(each, run.windows) for _, each in small)
    return Occurrence(
        "warning",
        "likely" if thread or not run.training.has_steps else "possible",
        time,
        f"The kernels are too small: {names_of(devices, run)} {'is' if len(devices) == 1 else 'are'} "
        f"occupied {median(device.mean('occupied'), where):.0f} % of the time, but they use only "
        f"{active:.0f} % of the chip{thread}.",
        evidence(device.host, device.key("active"), spans, 80.0)
        + evidence(device.host, device.key("occupied"), spans)
        + evidence(device.host, "cpu", spans),
        devices,
        cost_s=min(1 - active / 80, 1.0) * 0.5 * seconds,
    )


def _draws_much(device: Device) -> Bools:
    return above(device.mean("power"), 70)


def judge_communication(run: ObservedRun) -> Judgement:
    """Find devices that mostly exchange data with each other."""
    if not run.devices:
        return Abstention("the run has no devices that report")
    if len(run.devices) < 2 and len(run.hosts) < 2:
        return []
    telling = [
        device
        for device in run.devices
        if device.has("busy") and (device.has("active") or device.has("power") or device.has("tensor"))
    ]
    if not telling:
        return Abstention(
            "neither activity nor power tell a device that waits from one that computes", PROFILE_KEYS
        )
    bound: list[tuple[tuple[Device, str, Floats], list[Span]]] = []
    has_traffic = False
    for host in run.hosts:
        talks, key, rate = communicates(run, host)
        if key is None:
            continue
        has_traffic = True
        for device in host.devices:
            if device not in telling:
                continue
            active, power, tensor = device.mean("active"), device.mean("power"), device.mean("tensor")
            waits = above(device.mean("busy"), 60)
            if device.has("active"):
                waits &= below(active, 50)
                waits &= ~above(device.mean("dram"), MEMORY_BOUND_DRAM) & ~above(tensor, 25)
            else:
                waits &= below(power, 60)
            spans = _lasting(run, waits & talks, known(device.mean("busy")))
            if spans:
                bound.append(((device, key, rate), spans))
    if not has_traffic:
        return Abstention(
            "what devices and hosts send to each other is unknown",
            ("gpu.{i}.nvlinkBytes", "network.ib.{dev}.{port}.xmitBytes", "network.sent"),
        )
    return [
        _communication(run, time, members)
        for time, members in recurrences(run, bound)
        if len(members) >= max(2, len(telling) // 2)
    ]


def _communication(
    run: ObservedRun, time: list[Span], bound: list[tuple[tuple[Device, str, Floats], list[Span]]]
) -> Occurrence:
    """Report that devices wait for each other."""
    (device, key, rate), spans = bound[0]
    devices = [each for (each, *_), _ in bound]
    where = mask_of(spans, run.windows.count)
    signal = "active" if device.has("active") else "power"
    share = median(device.mean(signal), where)
    seconds = sum(seconds_of(each, run.windows) for _, each in bound)
    return Occurrence(
        "warning",
        "likely" if signal == "active" else "possible",
        time,
        f"{capitalised(names_of(devices, run))} mostly wait for each other: "
        f"{_rate_text(median(rate, where))} are exchanged, and "
        + (
            f"only {share:.0f} % of the chip computes."
            if signal == "active"
            else f"they draw only {share:.0f} % of their power limit."
        ),
        evidence(device.host, key, spans, value=rate, unit="MiB/s")
        + evidence(device.host, device.key(signal), spans, 80.0),
        devices,
        cost_s=0.5 * min(1 - share / 80, 1.0) * seconds,
    )


Bound = Callable[[Device], tuple[Bools, Bools]]


def _memory_bound(device: Device) -> tuple[Bools, Bools]:
    dram, active = device.mean("dram"), device.mean("active")
    bound = above(dram, MEMORY_BOUND_DRAM) & ~above(device.mean("tensor"), 45)
    bound |= above(dram, MEMORY_ACTIVE_DRAM) & above(dram - 0.9 * active, 0.0)
    return bound, known(dram, active)


def _compute_bound(device: Device) -> tuple[Bools, Bools]:
    active, tensor, fp64 = device.mean("active"), device.mean("tensor"), device.mean("fp64")
    memory, _ = _memory_bound(device)
    bound = (above(active, COMPUTE_ACTIVE) | above(tensor, COMPUTE_TENSOR) | above(fp64, 20)) & ~memory
    return bound, known(active)


def _describe(run: ObservedRun, bound: Bound, signals: Sequence[str], say: str) -> Judgement:
    """Describe by what the devices are bound, where most of them are."""
    telling = [
        device for device in run.devices if device.has("active") and any(device.has(name) for name in signals)
    ]
    if not telling:
        return Abstention("the activity of multiprocessors and of memory is unknown", PROFILE_KEYS)
    described = []
    for device in telling:
        where, decidable = bound(device)
        spans = _longest(run, device, where & above(device.work, 0.5), decidable, 60.0)
        if spans:
            described.append((device, spans))
    if len(described) <= len(telling) // 2:
        return []
    device, spans = described[0]
    where = mask_of(spans, run.windows.count)
    proof = [
        item
        for name in ("active", "dram", "tensor")
        for item in evidence(device.host, device.key(name), spans)
    ]
    values = {name: median(device.mean(name), where) for name in ("active", "dram", "tensor")}
    return [
        Occurrence(
            "info",
            "likely",
            spans,
            say.format(**{name: f"{value:.0f}" for name, value in values.items()}),
            proof,
            [each for each, _ in described],
        )
    ]


def judge_memory_bound(run: ObservedRun) -> Judgement:
    """Describe devices that are bound by the bandwidth of their memory."""
    return _describe(
        run,
        _memory_bound,
        ("dram",),
        "The work is bound by memory: it is accessed {dram} % of the time, with {active} % of the chip "
        "active.",
    )


def judge_compute_bound(run: ObservedRun) -> Judgement:
    """Describe devices that compute most of the time."""
    return _describe(
        run,
        _compute_bound,
        ("tensor", "dram", "active"),
        "The work is bound by computation: {active} % of the chip is active. That is good.",
    )


def recent(column: Floats, percentile: float, count: int) -> Floats:
    """Return a percentile of the last windows for each window, in steps of an eighth of so many."""
    result = np.full(len(column), np.nan)
    step = max(count // 8, 1)
    for first in range(0, len(column), step):
        part = column[max(first + step - count, 0) : first + step]
        part = part[~np.isnan(part)]
        if len(part):
            result[first : first + step] = np.percentile(part, percentile)
    return result


def _near_marks(run: ObservedRun) -> Bools:
    """The windows in which a checkpoint was marked, with those before and after."""
    marked = run.training.is_marked("checkpoint", "save")
    near = marked | np.concatenate([marked[1:], [False]]) | np.concatenate([[False], marked[:-1]])
    return np.asarray(near, dtype=np.bool_)


def _writes_much(run: ObservedRun, rates: Sequence[Floats]) -> Bools:
    """The windows in which a host writes three times as much as it usually did, and 20 MiB/s."""
    much = np.zeros(run.windows.count, dtype=np.bool_)
    for rate in rates:
        usual = recent(rate, 50, run.windows.number(RECENT_S))
        much |= above(rate - np.maximum(20.0, 3 * usual), 0.0)
    return much


def judge_checkpoints(run: ObservedRun) -> Judgement:
    """Find pauses that come again and again while a checkpoint is written."""
    telling = [device for device in run.devices if device.has("busy")]
    if not telling:
        return Abstention(
            "no device reports its utilisation" if run.devices else "the run has no devices that report"
        )
    inside = run.training_windows
    work = run.work
    usual = recent(np.where(inside, work, np.nan), 75, run.windows.number(RECENT_S))
    if not above(usual, 0.3).any():
        return []
    pauses = inside & above(usual, 0.3) & below(work, 0.5 * usual)
    marked = _near_marks(run)
    rates = [rate for host in run.hosts if known(rate := write_rate(host)).any()]
    if not rates and not marked.any():
        return Abstention(
            "neither writes to disks nor marks of callbacks are known",
            ("disk.out", "a mark named checkpoint"),
        )
    saving = pauses & (marked | _writes_much(run, rates))
    # A pause belongs to its checkpoint as a whole.
    checkpoint_pauses = [
        span
        for span in find_spans(pauses, known(work), min_windows=1, close_windows=1)
        if saving[span.slice].any()
    ]
    spans = recurring_spans(mask_of(checkpoint_pauses, run.windows.count), known(work))
    if not spans:
        return []
    where = mask_of(spans, run.windows.count)
    lost = float(np.nansum((1 - work[where] / usual[where]).clip(0))) * run.windows.width_s
    # Of the time from the first to one period after the last: they may have begun late, or have ended.
    covered = spans[-1].last - spans[0].first + 1
    total = covered * len(spans) / (len(spans) - 1) * run.windows.width_s
    if lost < 0.05 * total:
        return []
    return _stalls(run, telling, spans, lost, total, median(usual, where), rates)


def _stalls(
    run: ObservedRun,
    telling: list[Device],
    spans: list[Span],
    lost: float,
    total: float,
    usual: float,
    rates: list[Floats],
) -> list[Occurrence]:
    """Return that checkpoints stop the training."""
    mean_s = seconds_of(spans, run.windows) / len(spans)
    device = telling[0]
    return [
        Occurrence(
            "warning",
            "likely" if run.training.is_marked("checkpoint", "save").any() else "possible",
            spans,
            f"Each checkpoint stops the training for about {mean_s:.0f} s. There were {len(spans)}, and they "
            f"took {100 * lost / total:.0f} % of the time.",
            evidence(device.host, device.key("busy"), spans, 100 * usual)
            + (
                evidence(run.hosts[0].columns, "disk.out", spans, value=rates[0], unit="MiB/s")
                if rates
                else []
            ),
            telling,
            cost_s=lost * len(telling),
            share=lost * 1000 / run.duration_ms,
        )
    ]


def _rate_text(mib: float) -> str:
    """Write a rate: `820 MiB/s`, `38 GiB/s`."""
    return f"{mib:.0f} MiB/s" if mib < 2048 else f"{mib / 1024:.0f} GiB/s"


RULES = (
    FindingRule(
        "launch_bound",
        "Small kernels, launched one by one",
        "The devices are occupied all the time by kernels that use little of the chip: launching them "
        "takes longer than running them.",
        "Kernels run 60 % of the time or more, with 25 % of the multiprocessors active or less and little "
        "traffic to memory, without much communication. "
        "Utilisation alone does not tell, so without smActive the rule abstains.",
        "Use larger batches, torch.compile or CUDA graphs, fused optimizers; avoid .item() and prints in "
        "the loop.",
        PROFILE_KEYS[:1],
        judge_launch,
        order=6,
    ),
    FindingRule(
        "communication_bound",
        "The devices wait for each other",
        "Much of the time goes into exchanging gradients or activations.",
        "Kernels run 60 % of the time or more with less than half of the multiprocessors active (or at "
        "less than 60 % of the power), while links between devices or hosts carry much, both ways.",
        "Overlap communication and computation, use larger batches or gradient accumulation, shard less "
        "across hosts, check that NCCL uses NVLink and InfiniBand (NCCL_DEBUG=INFO).",
        ("gpu.{i}.smActive", "gpu.{i}.nvlinkBytes", "network.sent"),
        judge_communication,
        order=5,
    ),
    FindingRule(
        "checkpoint_stalls",
        "Checkpoints stop the training",
        "The devices stand still while a checkpoint is written.",
        "Pauses in which utilisation falls to half of what it usually was in the last two hours come again "
        "at about equal distances, while disks are written or a callback marks a checkpoint, and take 5 % "
        "of the time between the first and the last or more.",
        "Write checkpoints in the background (torch.distributed.checkpoint async_save, Orbax), less often, "
        "or to a local disk first.",
        ("gpu.{i}.gpu", "disk.out"),
        judge_checkpoints,
        order=4,
    ),
    FindingRule(
        "memory_bound",
        "The work is bound by memory",
        "Kernels wait for the device's memory. That describes the work; it is no fault.",
        "Memory is accessed 50 % of the time or more, without tensor cores being busy, or 40 % and about "
        "as much as multiprocessors are active.",
        "Fuse operations (torch.compile, flash attention), use lower precision or larger batches.",
        PROFILE_KEYS,
        judge_memory_bound,
        order=7,
    ),
    FindingRule(
        "compute_bound",
        "The work is bound by computation",
        "The chip computes most of the time: this is how a device should be used.",
        "50 % or more of the multiprocessors, or 15 % of the tensor cores, are active, and memory is not "
        "the limit.",
        "Nothing. Lower precision or sparsity would make it faster still.",
        PROFILE_KEYS,
        judge_compute_bound,
        order=7,
    ),
)
