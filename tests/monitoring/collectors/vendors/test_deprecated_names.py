"""Deprecated import paths, which packages with a vendor may still use."""

from __future__ import annotations

import importlib
import sys

import pytest

from runvitals.collectors.vendors import adapter, devices, text_tables


def test_the_old_name_of_text_tables_works_and_warns() -> None:
    sys.modules.pop("runvitals.collectors.vendors.grids", None)
    with pytest.warns(DeprecationWarning, match="has moved to runvitals.collectors.vendors.text_tables"):
        old = importlib.import_module("runvitals.collectors.vendors.grids")
    assert old.grid is text_tables.grid
    assert old.columns is text_tables.columns


@pytest.mark.parametrize("name", ["LIMIT", "POWER", "USED"])
def test_the_old_place_of_the_keys_works_and_warns(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} has moved to runvitals.collectors.vendors.devices"):
        assert getattr(adapter, name) == getattr(devices, name)


def test_a_name_that_adapter_never_had() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        adapter.nope  # noqa: B018
