"""The GPUs that a process may use: CUDA_VISIBLE_DEVICES, interpreted as CUDA does."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class VisibleGpu:
    """The names of a GPU in CUDA_VISIBLE_DEVICES: its index, its UUID and those of its MIG slices."""

    __slots__ = ("index", "name", "slice_uuids", "uuid")

    def __init__(self, index: int, uuid: str, name: str = "", slice_uuids: Sequence[str] = ()) -> None:
        self.index = index
        self.uuid = uuid
        self.name = name
        self.slice_uuids = tuple(slice_uuids)


def visible(setting: str | None, gpus: Sequence[VisibleGpu], order: str | None = None) -> set[int] | None:
    """Indices of the GPUs that CUDA lets a process use.

    Args:
        setting: CUDA_VISIBLE_DEVICES; None if it is not set, which allows all.
        gpus: in the driver's order, which is that of the PCI bus.
        order: CUDA_DEVICE_ORDER. Unless it is `PCI_BUS_ID`, CUDA numbers GPUs from the fastest one.

    Returns:
        None if it is unknown: for numbers in CUDA's order on a machine with different models of GPUs.

    Example:
        >>> gpus = [VisibleGpu(0, "GPU-8f1c"), VisibleGpu(1, "GPU-93aa")]
        >>> visible("1", gpus), visible("GPU-8f", gpus), visible("", gpus), visible("1,-1,0", gpus)
        ({1}, {0}, set(), {1})
    """
    if setting is None:
        return {gpu.index for gpu in gpus}
    chosen: list[int | str] = []
    is_counted = False
    for word in setting.split(","):
        device = _find_named(word.strip(), gpus, chosen)
        if device is None:
            break  # CUDA stops at the first invalid entry
        if device in chosen:
            return set()  # a duplicate hides all GPUs
        chosen.append(device)
        is_counted = is_counted or word.strip().isdigit()
    if is_counted and order != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1:
        return None
    by_slice = {uuid: gpu.index for gpu in gpus for uuid in gpu.slice_uuids}
    return {entry if isinstance(entry, int) else by_slice[entry] for entry in chosen}


def named_slices(pids: Sequence[int], proc: str, gpus: Sequence[VisibleGpu]) -> set[str]:
    """Return the UUIDs of the MIG slices to which the processes are restricted by name."""
    slices: set[str] = set()
    for pid in list(pids):
        setting = (environment(proc, pid) or {}).get("CUDA_VISIBLE_DEVICES", "")
        for word in setting.split(","):
            entry = _find_named(word.strip(), gpus, [])
            if entry is None:
                break
            if isinstance(entry, str):
                slices.add(entry)
    return slices


def visible_to(pids: Sequence[int], proc: str, gpus: Sequence[VisibleGpu]) -> set[int] | None:
    """Indices of the GPUs that any of the processes may use; None if unknown."""
    indices: set[int] = set()
    for pid in list(pids):
        variables = environment(proc, pid)
        if variables is None:
            continue
        of_process = visible(variables.get("CUDA_VISIBLE_DEVICES"), gpus, variables.get("CUDA_DEVICE_ORDER"))
        if of_process is None:
            return None
        indices |= of_process
    return indices


def _find_named(word: str, gpus: Sequence[VisibleGpu], chosen: list[int | str]) -> int | str | None:
    """Return the index of a GPU, or the UUID of a slice, that an entry refers to; None if it is invalid."""
    if word.isdigit():
        position = int(word)
        return gpus[position].index if position < len(gpus) else None
    if word.startswith("GPU-"):
        matches: list[int | str] = [gpu.index for gpu in gpus if gpu.uuid.startswith(word)]
    elif word.startswith(
        "MIG-GPU-"
    ):  # of drivers before 470: MIG-GPU-<uuid>/<gpu instance>/<compute instance>
        gpu_uuid = word.removeprefix("MIG-").partition("/")[0]
        matches = [gpu.index for gpu in gpus if gpu.uuid == gpu_uuid]
    elif word.startswith("MIG-"):
        matches = [uuid for gpu in gpus for uuid in gpu.slice_uuids if uuid.startswith(word)]
    else:
        return None
    return matches[0] if len(matches) == 1 else None


def environment(proc: str, pid: int) -> dict[str, str] | None:
    """Return the environment that a process was started with; None if it cannot be read.

    Changes that the process has made since are not visible, but a launcher's settings are.
    """
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            data = file.read()
    except OSError:  # it has ended, belongs to another user, or there is no procfs
        return None
    pairs = [entry.partition("=") for entry in data.decode("utf-8", "replace").split("\0")]
    return {name: value for name, equals, value in pairs if equals}
