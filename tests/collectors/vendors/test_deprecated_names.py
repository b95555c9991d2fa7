"""Deprecated import paths, which packages with a vendor may still use."""

from __future__ import annotations

import importlib
import sys

import pytest

from runvitals.collectors.vendors import text_tables


def test_the_old_name_of_text_tables_works_and_warns() -> None:
    sys.modules.pop("runvitals.collectors.vendors.grids", None)
    with pytest.warns(DeprecationWarning, match="has moved to runvitals.collectors.vendors.text_tables"):
        old = importlib.import_module("runvitals.collectors.vendors.grids")
    assert old.grid is text_tables.grid
    assert old.columns is text_tables.columns
