"""The page names the same system statistics as the server, with the same units."""

from __future__ import annotations

import re
from pathlib import Path

from runvitals.model.system_statistics import QUANTITIES

SOURCE = Path(__file__).parents[2] / "web" / "src" / "features" / "runs" / "list" / "systemStatistics.ts"


def test_the_page_names_the_statistics_of_the_server() -> None:
    rows = re.findall(r"^  \['(\w+)', '([^']+)', (true|false),", SOURCE.read_text(), re.MULTILINE)
    assert rows == [
        (quantity.name, quantity.unit, "true" if len(quantity.statistics) == 1 else "false")
        for quantity in QUANTITIES
    ]
