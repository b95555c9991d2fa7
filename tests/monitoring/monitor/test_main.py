"""What the process of a monitor loads."""

from __future__ import annotations

from pathlib import Path

from runvitals.monitoring.monitor.main import absent_here
from tests.isolated import printed
from tests.monitoring.collectors.trees import RAPL, plant

LOADED = """
from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.monitor import main
print(*main.absent_here(Scope(), ["gaudi", "dcgm"]), "and", *sys.modules)
"""


def test_collectors_that_the_machine_lacks_are_named_with_the_reason(tmp_path: Path) -> None:
    scope = plant(tmp_path, RAPL)
    assert absent_here(scope, ["energy", "gaudi"]) == {
        "gaudi": "no Intel Gaudi here: no PCI device of vendor 1da3, no /dev/hl0"
    }


def test_their_probes_and_sockets_are_not_loaded() -> None:
    absent, loaded = printed(LOADED).split(" and ")
    assert sorted(absent.split()) == ["dcgm", "gaudi"]
    assert not [name for name in loaded.split() if "vendors" in name or "dcgm" in name or "socket" in name]
