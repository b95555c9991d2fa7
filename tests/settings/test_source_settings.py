"""Settings of single sources: accepted and rejected values, and redaction of their secrets."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.journal.clock import RunClock
from runvitals.monitoring.settings.settings import SettingError, Settings, resolve
from runvitals.sdk.attachment import monitor_spec

DCGM = "http://localhost:9400/metrics"
SECRETS = {
    "openmetrics_endpoints": {"a": "http://me:hunter2@host/m?token=tok12345"},
    "openmetrics_headers": {"X-Scope": "hunter2"},
}


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("openmetrics_endpoints", f"dcgm={DCGM}", {"dcgm": DCGM}),
        ("openmetrics_endpoints", f'{{"dcgm": "{DCGM}"}}', {"dcgm": DCGM}),
        ("openmetrics_endpoints", f"a={DCGM}?x=1 b={DCGM}", {"a": f"{DCGM}?x=1", "b": DCGM}),
        ("openmetrics_filters", "dcgm.*TEMP{1,2}", ["dcgm.*TEMP{1,2}"]),
        ("openmetrics_filters", '["a", "b"]', ["a", "b"]),
        ("openmetrics_filters", ("a", "b"), ["a", "b"]),
        ("openmetrics_filters", '{"a": {"gpu": "0"}, "b": {}}', {"a": {"gpu": "0"}, "b": {}}),
        ("openmetrics_headers", "X-Token=a=b Y=c", {"X-Token": "a=b", "Y": "c"}),
        ("openmetrics_headers", {"Authorization": "Bearer x"}, {"Authorization": "Bearer x"}),
    ],
)
def test_accepted_values(name: str, given: Any, value: object) -> None:
    assert resolve(Settings(**{name: given}).given, {}, "/")[name] == value
    if isinstance(given, str):
        assert resolve({}, {f"RUNVITALS_{name.upper()}": given}, "/")[name] == value


def test_table_in_a_settings_file(tmp_path: Path) -> None:
    (tmp_path / "runvitals").mkdir()
    (tmp_path / "runvitals" / "settings.toml").write_text(
        f'openmetrics_endpoints = {{dcgm = "{DCGM}"}}\n[openmetrics_filters]\n"GPU_TEMP" = {{gpu = "[01]"}}\n'
    )
    values = resolve({}, {"XDG_CONFIG_HOME": str(tmp_path)}, "/")
    assert values["openmetrics_endpoints"] == {"dcgm": DCGM}
    assert values["openmetrics_filters"] == {"GPU_TEMP": {"gpu": "[01]"}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("openmetrics_endpoints", {"a.b": DCGM}),
        ("openmetrics_endpoints", {"": DCGM}),
        ("openmetrics_endpoints", {"a": "localhost:9400"}),
        ("openmetrics_endpoints", {"a": 9400}),
        ("openmetrics_endpoints", [DCGM]),
        ("openmetrics_endpoints", DCGM),
        ("openmetrics_filters", ["("]),
        ("openmetrics_filters", {"a": {"gpu": "["}}),
        ("openmetrics_filters", {"a": "b"}),
        ("openmetrics_filters", [""]),
        ("openmetrics_filters", [3]),
        ("openmetrics_filters", 3),
        ("openmetrics_headers", "X-Token"),
        ("openmetrics_headers", {"X": "a\nY: b"}),
        ("neuron_monitor_config", "config.json"),
        ("neuron_monitor_config", "/no/such/file"),
        ("neuron_monitor_config", 3),
    ],
)
def test_rejected_values(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"invalid setting {name} = .*: expected "):
        Settings(**{name: value})


def test_errors_reveal_no_secrets_of_invalid_values() -> None:
    for name, value in (
        ("openmetrics_headers", {"X": "hunter2\n"}),
        ("openmetrics_headers", "hunter2"),
        ("openmetrics_endpoints", {"a b": "http://me:hunter2@host"}),
    ):
        with pytest.raises(SettingError) as caught:
            Settings(**{name: value})
        assert "hunter2" not in str(caught.value)


def test_secrets_reach_the_monitor_but_not_the_journal() -> None:
    values = resolve(Settings(**SECRETS).given, {}, "/")
    reported = monitor_spec(values, "r", "/d", {"pid": 1}, ["train.py"], RunClock())
    assert reported["options"] == SECRETS
    recorded = {key: value for key, value in reported.items() if key != "options"}
    assert reported["settings"]["openmetrics_headers"] == {"X-Scope": "***"}
    assert reported["settings"]["openmetrics_endpoints"] == {"a": "http://me:***@host/m?token=***"}
    assert "hunter2" not in json.dumps(recorded)
    assert "tok12345" not in json.dumps(recorded)


def test_unset_settings_are_not_recorded() -> None:
    reported = monitor_spec(resolve({}, {}, "/"), "r", "/d", {"pid": 1}, [], RunClock())
    assert reported["options"] == {}
    assert not any(name.startswith(("openmetrics", "neuron")) for name in reported["settings"])


@pytest.mark.parametrize("form", [["settings"], ["settings", "--json"]])
def test_settings_are_shown_redacted(
    form: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(f"RUNVITALS_{name.upper()}", json.dumps(value))
    assert main(form) == 0
    shown = capsys.readouterr().out
    assert "X-Scope" in shown
    assert "hunter2" not in shown
    assert "tok12345" not in shown


def test_neuron_monitor_config_must_be_an_absolute_path() -> None:
    assert Settings(neuron_monitor_config=sys.executable).given == {
        "neuron_monitor_config": os.path.abspath(sys.executable)
    }


@pytest.mark.parametrize("variable", ["RUNVITALS_ENTITY", "WANDB_ENTITY"])
def test_the_team_of_a_run_is_recorded(variable: str) -> None:
    reported = monitor_spec(resolve({}, {variable: "vision"}, "/"), "r", "/d", {"pid": 1}, [], RunClock())
    assert reported["settings"]["entity"] == "vision"


def test_without_a_team_none_is_recorded() -> None:
    reported = monitor_spec(resolve({}, {}, "/"), "r", "/d", {"pid": 1}, [], RunClock())
    assert "entity" not in reported["settings"]
