"""Attributes are parsed as in W&B's `parse_metric`, except that invalid numbers are left out."""

from __future__ import annotations

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.graphcore.attributes import (
    LASTING,
    VARYING,
    identity,
    parse_metric,
    readings,
    user,
)
from tests.monitoring.collectors.graphcore.ipus import card


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("average board temp", "31.5 C", ("average board temp (C)", 31.5)),
        ("average board temp", "20C", ("average board temp (C)", 20.0)),
        ("clock", "1600MHz", ("clock (MHz)", 1600.0)),
        ("clock", "1600 MHz", ("clock (MHz)", 1600.0)),
        ("ipu power", "88.5 W", ("ipu power (W)", 88.5)),
        ("ipu utilisation", "72.50%", ("ipu utilisation (%)", 72.5)),
        ("ipu utilisation (session)", "0.00%", ("ipu utilisation (session) (%)", 0.0)),
        ("link speed", "16.0 GT/s", ("link speed (GT/s)", 16.0)),
        ("numa node", "1", ("numa node", 1.0)),
        ("average die temp", "33.4", ("average die temp", 33.4)),  # no unit in the value: none in the name
        ("ipu power", "N/A", None),
        ("clock", "MHz", None),
        ("average board temp", "warm", None),
        ("average board temp", "nan C", None),
        ("clock", "infMHz", None),
        ("pci id", "0000:1a:00.0", None),
        ("board serial number", "0042.0001.700001", None),
        ("", "", None),
    ],
)
def test_a_metric_and_its_unit(name: str, value: str, parsed: tuple[str, float] | None) -> None:
    assert parse_metric(name, value) == parsed


def test_a_card_has_all_written_attributes() -> None:
    values = readings(card(0, 7))
    assert values.keys() >= {*VARYING, *LASTING}


def test_every_key_is_a_declared_gauge() -> None:
    for name in (*VARYING, *LASTING.values()):
        match = DEFINITIONS.find(f"ipu.3.{name}")
        assert match is not None
        assert (match.key, match.labels) == (f"ipu.3.{name}", {"device_id": "3"})
        assert match.metric.merge == "mean"
    assert DEFINITIONS.find("ipu.3.link speed (GT/s)") == DEFINITIONS.find("ipu.3.speed (GT/s)")
    assert DEFINITIONS.find("ipu.3.ipu power") == DEFINITIONS.find("ipu.3.ipu power (W)")


def test_identity_and_user_of_an_ipu() -> None:
    about = identity(card(3, 41, driver_version="N/A"))
    assert about["id"] == "3"
    assert about["board type"] == "C2"
    assert "driver version" not in about
    assert user(card(0, 41)) == 41
    for pid in ("N/A", "", "-1", "0x29"):
        assert user(card(0, None, user_process_id=pid)) is None
    assert user(card(0, None)) is None
