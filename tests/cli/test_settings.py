from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.cli.settings import reference

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_reference_is_current() -> None:
    assert REFERENCE.read_text() == reference(), (
        "run: runvitals settings --markdown > docs/reference/settings.md"
    )


def test_values_are_shown_with_their_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runvitals.toml").write_text('project = "digits"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("RUNVITALS_SAMPLING_INTERVAL", "0.5")
    assert main(["settings", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["project"] == {"value": "digits", "from": str(tmp_path / "runvitals.toml")}
    assert rows["sampling_interval"]["from"] == "environment variable RUNVITALS_SAMPLING_INTERVAL"
    assert rows["disk_paths"] == {"value": ["/"], "from": "default"}
    assert main(["settings"]) == 0
    assert (
        "sampling_interval      0.5  (environment variable RUNVITALS_SAMPLING_INTERVAL)"
        in capsys.readouterr().out
    )
