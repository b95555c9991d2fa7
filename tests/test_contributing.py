"""The example in CONTRIBUTING.md works: its source, its metric definition and its tests."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from runvitals.model.metrics import metric
from runvitals.monitoring.collectors.base import Scope, Tick

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BLOCKS = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.fixture
def files() -> Iterator[ModuleType]:
    """The page's source as a module."""
    module = ModuleType("runvitals.monitoring.collectors.host.files")
    exec(BLOCKS["src/runvitals/monitoring/collectors/host/files.py"], module.__dict__)
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize(
    "name", re.findall(r"def (test_\w+)", BLOCKS["tests/monitoring/collectors/host/test_files.py"])
)
def test_tests_of_the_page_pass(name: str, files: ModuleType, tmp_path: Path) -> None:
    tests: dict[str, object] = {}
    exec(BLOCKS["tests/monitoring/collectors/host/test_files.py"], tests)
    test = tests[name]
    assert callable(test)
    test(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="the page's source reads /proc")
def test_definitions_of_the_page_cover_its_source(files: ModuleType) -> None:
    [row] = eval(f"[{BLOCKS['src/runvitals/model/metrics/cpu.py']}]", vars(metric))
    tick = Tick(time.monotonic())
    files.probe(Scope()).sample(tick)
    assert tick.gauges.keys() == {row.key}
