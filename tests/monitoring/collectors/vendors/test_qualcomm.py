"""Qualcomm's tool: sections with units after the names, with made-up values."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.qualcomm import QUALCOMM
from tests.monitoring.collectors.vendors.test_vendors import device, read, who

MIB = 1024.0 * 1024.0
TEXT = """\
LRT QC_IMAGE_VERSION: LRT.AIC.9.9.9
Number of devices: 3
QID 2
        Status:Ready
        PCI Address:0000:a1:00.0
        PCI Info:Processing accelerators Qualcomm Device a100
        HW Serial:0x47a600d6
        FW OEM_IMAGE_VERSION:
        Dram Total:32768 MB
        Dram Free:24576 MB
        Dram Fragmentation:0.00%
        Nsp Total:16
        Nsp Free:2
        NSP Frequency(Mhz):825
        DDR Frequency(Mhz):2133
        NSP Defective PG Mask: 0x0
        Board serial:PN471-11-000015
        SoC temperature(degree C):46.50
        Board power(Watts):25.00
        TDP Cap(Watts):75.00
QID 0
\tStatus:Ready
\tSku Type:Pcie Ultra
\tPCI Address:0000:01:00.0
\tDram Total:33554432 KB
\tDram Free:33554432 KB
\tSoC temperature(degree C):N/A
\tBoard power(Watts):48.00
\tBoard TDP Cap(Watts):150.00
\tSOC power(Watts):11.00
\tSOC TDP Cap(Watts):44.00
QID 1
\tStatus:Error
\tPCI Address:0000:81:00.0
\tDram Total:0 MB
\tDram Free:0 MB
QID 101
\tStatus:Ready
\tDram Total:1024 MB
\tDram Free:0 MB
"""


def test_sections_of_two_releases() -> None:
    devices = read(QUALCOMM, TEXT)
    assert device(devices, 2) == {
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 8192 * MIB,
        "temp": 46.5,
        "powerWatts": 25.0,
        "powerPercent": 25.0 * 100.0 / 75.0,
        "enforcedPowerLimitWatts": 75.0,
        "boardPowerWatts": 25.0,
        "healthy": 1.0,
        "graphicsClock": 825.0,
        "memoryClock": 2133.0,
    }
    # For a card with four chips: the power of the chip, not four times that of the card.
    assert device(devices, 0) == {
        "memoryAllocated": 0.0,
        "memoryAllocatedBytes": 0.0,
        "powerWatts": 11.0,
        "powerPercent": 25.0,
        "enforcedPowerLimitWatts": 44.0,
        "boardPowerWatts": 48.0,
        "healthy": 1.0,
    }
    assert device(devices, 1) == {"healthy": 0.0}
    assert who(QUALCOMM, TEXT)[2] == {
        "name": "Processing accelerators Qualcomm Device a100",
        "pci": "0000:a1:00.0",
        "uuid": "0x47a600d6",
        "serial": "PN471-11-000015",
    }


def test_allocated_cores_are_no_load_and_reservations_are_no_devices() -> None:
    devices = read(QUALCOMM, TEXT)
    assert not any(key.endswith(".gpu") for key in devices)
    assert {key.split(".")[0] for key in devices} == {"0", "1", "2"}


def test_zero_watts_are_left_out() -> None:
    text = "QID 0\n\tBoard power(Watts):0.00\n\tBoard TDP Cap(Watts):2400.00\n\tSOC power(Watts):20.00\n"
    assert read(QUALCOMM, text) == {"0.powerWatts": 20.0}


def test_unknown_units_are_left_out() -> None:
    text = "QID 0\n\tBoard power(Horses):48.00\n\tSoC temperature(degree F):115.0\n"
    assert read(QUALCOMM, text) == {}
