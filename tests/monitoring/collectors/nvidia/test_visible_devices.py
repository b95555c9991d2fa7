"""CUDA_VISIBLE_DEVICES is interpreted as CUDA does."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.nvidia.visible_devices import (
    VisibleGpu,
    environment,
    named_slices,
    visible,
)

GPUS = [
    VisibleGpu(0, "GPU-8f1c0000-aaaa", "H100"),
    VisibleGpu(1, "GPU-93aa0000-bbbb", "H100", ["MIG-11aa-22bb", "MIG-33cc-44dd"]),
    VisibleGpu(2, "GPU-93ff0000-cccc", "H100"),
]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, {0, 1, 2}),
        ("", set()),
        ("-1", set()),
        ("NoDevFiles", set()),
        ("0", {0}),
        ("2,0", {0, 2}),
        (" 1 , 2 ", {1, 2}),
        ("0,9,1", {0}),  # entries after an invalid one are ignored
        ("1,-1,0", {1}),
        ("1,1", set()),  # a duplicate hides all GPUs
        ("GPU-93aa0000-bbbb", {1}),
        ("GPU-8f,GPU-93ff", {0, 2}),
        ("GPU-93", set()),  # prefix of two UUIDs
        ("GPU-93ff,0", {2, 0}),
        ("MIG-11aa-22bb", {1}),
        ("MIG-11aa-22bb,MIG-33cc-44dd", {1}),
        ("MIG-GPU-93aa0000-bbbb/7/0", {1}),
        ("MIG-77", set()),
    ],
)
def test_gpus_visible_to_a_process(setting: str | None, expected: set[int]) -> None:
    assert visible(setting, GPUS) == expected


def test_indices_among_different_gpus_need_pci_bus_order() -> None:
    unlike = [VisibleGpu(0, "GPU-1", "T400"), VisibleGpu(1, "GPU-2", "RTX A6000")]
    assert visible("0", unlike) is None
    assert visible("0", unlike, "FASTEST_FIRST") is None
    assert visible("0", unlike, "PCI_BUS_ID") == {0}
    assert visible("GPU-2", unlike) == {1}
    assert visible("", unlike) == set()


def test_the_environment_a_process_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(b"CUDA_VISIBLE_DEVICES=0,1\0EMPTY=\0odd\0NAME=\xff\0")
    assert environment(str(tmp_path), 7) == {"CUDA_VISIBLE_DEVICES": "0,1", "EMPTY": "", "NAME": "\ufffd"}
    assert environment(str(tmp_path), 8) is None


def test_the_slices_to_which_processes_are_restricted(tmp_path: Path) -> None:
    for pid, setting in ((7, "MIG-11aa-22bb"), (8, "MIG-33cc,MIG-77,MIG-11aa"), (9, "1")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(f"CUDA_VISIBLE_DEVICES={setting}\0".encode())
    assert named_slices([7], str(tmp_path), GPUS) == {"MIG-11aa-22bb"}
    assert named_slices([7, 8, 9, 10], str(tmp_path), GPUS) == {"MIG-11aa-22bb", "MIG-33cc-44dd"}
    assert named_slices([9], str(tmp_path), GPUS) == set()
