"""Runs all checks, subject by subject. A check that raises is reported as a finding."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runvitals.sdk.probe import MachineReading, read_once
from runvitals.tools.doctor import delivery, sources, storage, system, terminal, trial_run
from runvitals.tools.doctor.finding import STATES, Check, State


@dataclass(slots=True)
class Examination:
    """The findings, and the reading they are based on."""

    findings: list[Check] = field(default_factory=list)
    reading: MachineReading = field(default_factory=MachineReading)

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return any(finding.state == "FAIL" for finding in self.findings)

    def counts(self) -> dict[State, int]:
        """Return the number of findings in each state."""
        return {state: sum(finding.state == state for finding in self.findings) for state in STATES}


def examine(
    values: Mapping[str, Any],
    directory: str,
    on_finding: Callable[[Check], None] = lambda finding: None,
) -> Examination:
    """Run all checks. Takes 2 to 3 s, longer if drivers or destinations are slow.

    Args:
        values: resolved settings.
        directory: the data folder.
        on_finding: called with each finding as it arrives.

    Example:
        >>> report = examine(resolve({}, os.environ, os.getcwd()), data_dir())
        >>> report.counts()
        {'PASS': 24, 'PARTIAL': 2, 'ABSENT': 21, 'FAIL': 0}
    """
    report = Examination()

    def take(section: str, ask: Callable[[], Iterable[Check]]) -> None:
        for finding in _safely(section, ask):
            report.findings.append(finding)
            on_finding(finding)

    def from_sources() -> Iterator[Check]:
        report.reading = read_once(values)
        yield from sources.findings(report.reading, values)

    take("system", lambda: system.findings(values))
    take("storage", lambda: storage.findings(directory))
    take("monitor", lambda: trial_run.findings(values))
    take("sources", from_sources)
    take("delivery", lambda: delivery.findings(values, directory, os.environ))
    take("terminal", lambda: terminal.findings(sys.stdout, os.environ))
    return report


def _safely(section: str, ask: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    try:
        yield from ask()
    except Exception as error:  # noqa: BLE001 - on a machine that breaks one check, the others are needed most
        text = f"the check itself failed: {type(error).__name__}: {error}"
        yield Check(section, "check", "FAIL", text, "please report this with a bundle: --bundle FILE")
