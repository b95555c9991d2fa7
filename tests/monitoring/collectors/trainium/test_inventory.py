"""Output of neuron-ls in several formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runvitals.monitoring.collectors.trainium.inventory import parse

DEVICE: dict[str, Any] = {
    "neuron_device": 3,
    "bdf": "a1:00.0",
    "cpu_affinity": "0-23",
    "numa_node": "1",
    "connected_to": [2, 4],
    "nc_count": 4,
    "logical_neuroncore_config": 2,
    "memory_size": 103079215104,
    "neuroncore_ids": [12, 13, 14, 15],
    "neuron_processes": [{"pid": 77, "command": "python train.py", "neuron_runtime_version": "2.30.1"}],
}
KNOWN = {
    "index": 3,
    "pci": "0000:a1:00.0",
    "cores": 4,
    "core_ids": [12, 13, 14, 15],
    "logical_neuroncore_config": 2,
    "memory_bytes": 103079215104,
    "numa_node": 1,
    "cpus": "0-23",
    "connected_to": [2, 4],
    "pids": [77],
}


def test_a_device() -> None:
    assert parse(json.dumps([DEVICE], indent=4).encode()) == [KNOWN]


def test_devices_are_sorted_and_unknown_values_left_out() -> None:
    bare = {"neuron_device": 0, "bdf": "0000:00:1e.0", "numa_node": "-1", "connected_to": None}
    assert parse(json.dumps([DEVICE, bare]).encode()) == [{"index": 0, "pci": "0000:00:1e.0"}, KNOWN]


def test_devices_of_an_instance_in_a_list() -> None:
    output = b'[{"instance": {"type": "trn2"}, "devices": [{"neuron_device": 3, "bdf": "cc:00.0"}]}]'
    assert parse(output) == [{"index": 3, "pci": "0000:cc:00.0"}]


def test_a_list_within_an_object_of_later_releases() -> None:
    document = {"instance": {"type": "trn2"}, "neuron_devices": {"list": [DEVICE]}}
    assert parse(b"time=now level=warn\n" + json.dumps(document).encode()) == [KNOWN]


@pytest.mark.parametrize(
    "output", [b"", b"[]", b'{"neuron_devices": []}', b"unknown flag: -j", b'[{"neuron_device"']
)
def test_no_devices(output: bytes) -> None:
    with pytest.raises(ValueError, match=r"no device|no JSON|invalid|the output is empty"):
        parse(output)
