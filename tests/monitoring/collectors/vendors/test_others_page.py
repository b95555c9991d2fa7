"""The page about other accelerators: its example works, and it mentions every source."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.sources import probe_all
from runvitals.monitoring.collectors.vendors.probes import ORDER
from tests.monitoring.collectors.trees import BARE_VM, plant, put
from tests.monitoring.collectors.vendors.machines import tool, values

PAGE = (Path(__file__).parents[4] / "docs" / "sources" / "others.md").read_text()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A folder of installed packages with the page's example."""
    path = sys.path.copy()
    code = re.findall(r"```python\n(# acme_vitals\.py\n.*?)```", PAGE, re.DOTALL)
    entry = re.findall(
        r'```toml\n\[project\.entry-points\."runvitals.collectors"\]\n(.*?)```', PAGE, re.DOTALL
    )
    folder = tmp_path / "site-packages"
    put(folder, "acme_vitals.py", code[0])
    put(folder, "acme-1.dist-info/entry_points.txt", "[runvitals.collectors]\n" + entry[0].replace('"', ""))
    yield folder
    sys.path[:] = path
    sys.modules.pop("acme_vitals", None)


def test_the_vendor_of_the_page_is_found_and_read(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "index, name, load, used, total, heat, draw, cap\n0, Acme 1, 40 %, 1 MiB, 4 MiB, 50 C, 100 W, 400 W\n"
    )
    tool(tmp_path, monkeypatch, "acme-smi", text)
    collectors = probe_all(plant(tmp_path / "root", BARE_VM), {"acme"}, [str(site)])
    assert collectors.reasons == {}
    (acme,) = collectors.collectors
    assert values(acme) == {
        "gpu.0.gpu": 40.0,
        "gpu.0.memoryAllocated": 25.0,
        "gpu.0.memoryAllocatedBytes": 1024.0 * 1024,
        "gpu.0.temp": 50.0,
        "gpu.0.powerWatts": 100.0,
        "gpu.0.powerPercent": 25.0,
        "gpu.0.enforcedPowerLimitWatts": 400.0,
    }


@pytest.mark.parametrize("name", [door.name for door in ORDER if door.name not in ("nvidia", "amd")])
def test_the_page_mentions_every_source(name: str) -> None:
    assert f"\n| `{name}` |" in PAGE
