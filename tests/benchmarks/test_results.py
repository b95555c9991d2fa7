"""The output of a benchmark is recorded in its block of RESULTS.md."""

from __future__ import annotations

import sys

import pytest
from benchmarks.overhead import machine
from benchmarks.results import RESULTS, TITLES, run, with_block

DOCUMENT = "# Results\n\n## Overhead\n\nA note.\n\n## Store\n\nAnother.\n"
BLOCK = "<!-- scripts/bench overhead -->\n{}\n<!-- end -->\n"


def test_block_is_added_then_replaced() -> None:
    once = with_block(DOCUMENT, "## Overhead", "scripts/bench overhead", "1 ms")
    assert once == DOCUMENT.replace("A note.\n", "A note.\n\n" + BLOCK.format("1 ms"))
    twice = with_block(once, "## Overhead", "scripts/bench overhead", "2 ms")
    assert twice == once.replace("1 ms", "2 ms")


def test_other_options_have_a_separate_block() -> None:
    once = with_block(DOCUMENT, "## Store", "scripts/bench store", "1 ms")
    twice = with_block(once, "## Store", "scripts/bench store --runs 5", "2 ms")
    assert twice.index("1 ms") < twice.index("2 ms")


def test_missing_section_is_added() -> None:
    assert with_block("# Results\n", "## Journal", "c", "x").startswith(
        "# Results\n\n## Journal\n\n<!-- c -->\nx"
    )


def test_every_benchmark_has_a_section() -> None:
    text = RESULTS.read_text()
    for name, title in TITLES.items():
        folder = RESULTS.parent
        assert (folder / f"{name}.py").exists() or (folder / name / "__main__.py").exists()
        assert f"\n## {title}\n" in text


def test_failed_benchmark_is_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run([sys.executable, "-c", "print('half', flush=True); raise SystemExit(3)"])
    assert ended.value.code == 3
    assert capsys.readouterr().out == "half\n"


def test_versions_of_installed_packages_only() -> None:
    names = [line.split()[0] for line in machine.versions()]
    assert names[0] == "runvitals"
    assert "psutil" in names
