"""Use of a GPU by the run's processes, from KFD and from fdinfo."""

from __future__ import annotations

from pathlib import Path

from runvitals.monitoring.collectors.amd.kfd import find_nodes, visible
from runvitals.monitoring.collectors.amd.processes import ProcessUse
from tests.monitoring.collectors.trees import plant, put

PCI = "0000:03:00.0"


def fdinfo(busy_ns: int) -> str:
    return (
        f"pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-pdev:\t{PCI}\n"
        f"drm-memory-vram:\t2048 KiB\ndrm-engine-gfx:\t{busy_ns} ns\n"
    )


def test_duplicate_descriptors_count_once(tmp_path: Path) -> None:
    files = {"proc/70/fd/5": "-> /dev/dri/renderD128", "proc/70/fd/6": "-> /dev/dri/renderD128"}
    infos = {f"proc/70/fdinfo/{number}": fdinfo(1_000_000_000) for number in (5, 6)}
    plant(tmp_path, files | infos)
    use = ProcessUse(str(tmp_path), f"{tmp_path}/proc")
    assert use.read([70], {}, 100.0) == {PCI: {"memoryAllocatedBytes": 2048.0 * 1024}}
    for number in (5, 6):
        put(tmp_path, f"proc/70/fdinfo/{number}", fdinfo(3_000_000_000))
    assert use.read([70], {}, 105.0) == {PCI: {"memoryAllocatedBytes": 2048.0 * 1024, "gpu": 40.0}}
    assert use.read([71], {}, 110.0) == {}


def test_memory_that_an_old_driver_does_not_report_is_absent(tmp_path: Path) -> None:
    """Not 0, also if another of the run's files has it: the sum would look complete."""
    old = fdinfo(0).replace("drm-memory-vram:\t2048 KiB\n", "").replace("id:\t9", "id:\t8")
    links = {f"proc/{pid}/fd/5": "-> /dev/dri/renderD128" for pid in (70, 71)}
    plant(tmp_path, links | {"proc/70/fdinfo/5": old, "proc/71/fdinfo/5": fdinfo(0)})
    use = ProcessUse(str(tmp_path), f"{tmp_path}/proc")
    assert use.read([70, 71], {}, 100.0) == {PCI: {}}
    assert use.read([71], {}, 105.0) == {PCI: {"memoryAllocatedBytes": 2048.0 * 1024}}


def test_kfd_memory_is_preferred_over_fdinfo(tmp_path: Path) -> None:
    nodes = "sys/class/kfd/kfd/topology/nodes"
    lines = f"location_id {0x0300}\ndomain 0\ndrm_render_minor 128\nunique_id 4711\n"
    plant(
        tmp_path,
        {
            f"{nodes}/0/gpu_id": "0\n",
            f"{nodes}/1/gpu_id": "5521\n",
            f"{nodes}/1/properties": lines,
            "sys/class/kfd/kfd/proc/70/vram_5521": "4096\n",
            "proc/70/fd/5": "-> /dev/dri/renderD128",
            "proc/70/fdinfo/5": fdinfo(0),
        },
    )
    (node,) = find_nodes(str(tmp_path))
    assert (node.number, node.pci, node.render_minor) == (1, PCI, 128)
    use = ProcessUse(str(tmp_path), f"{tmp_path}/proc")
    assert use.read([70], {PCI: node}, 100.0) == {PCI: {"memoryAllocatedBytes": 4096.0}}
    assert visible([node], {"ROCR_VISIBLE_DEVICES": f"GPU-{4711:016x}"}) == [node]
    assert visible([node], {"HIP_VISIBLE_DEVICES": "1"}) == []
