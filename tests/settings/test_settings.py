from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model import limits
from runvitals.model.names import has_control_characters
from runvitals.monitoring.settings import setting_definition
from runvitals.monitoring.settings.settings import SETTINGS, SettingError, Settings, find, resolve, trace
from runvitals.sdk import start


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose user file sets 10 s, with a project file that sets 5 s."""
    user = tmp_path / "config" / "runvitals"
    user.mkdir(parents=True)
    (user / "settings.toml").write_text(
        'sampling_interval = 10\nproject = "users"\nlabels = {team = "vision"}\n'
    )
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "runvitals.toml").write_text('sampling_interval = 5\ntags = ["a", "b"]\n')
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_precedence(tmp_path: Path, home: dict[str, str]) -> None:
    inside, outside = str(tmp_path / "project" / "src"), str(tmp_path)
    env = {**home, "RUNVITALS_SAMPLING_INTERVAL": "2"}
    assert resolve({}, {"XDG_CONFIG_HOME": str(tmp_path)}, outside)["sampling_interval"] == 1.0
    assert resolve({}, home, outside)["sampling_interval"] == 10.0
    assert resolve({}, home, inside)["sampling_interval"] == 5.0
    assert resolve({}, env, inside)["sampling_interval"] == 2.0
    assert resolve(Settings(sampling_interval=0.5).given, env, inside)["sampling_interval"] == 0.5


def test_the_entity_of_wandb_counts_if_nothing_else_sets_one(tmp_path: Path, home: dict[str, str]) -> None:
    here = str(tmp_path)
    assert resolve({}, home, here)["entity"] is None
    environ = {**home, "WANDB_ENTITY": "speech"}
    assert trace({}, environ, here)["entity"] == ("speech", "environment variable WANDB_ENTITY")
    (tmp_path / "config" / "runvitals" / "settings.toml").write_text('entity = "text"')
    assert resolve({}, environ, here)["entity"] == "text"
    environ["RUNVITALS_ENTITY"] = "vision"
    assert resolve({}, environ, here)["entity"] == "vision"
    assert resolve(Settings(entity="own").given, environ, here)["entity"] == "own"


def test_origins_are_merged_per_setting(tmp_path: Path, home: dict[str, str]) -> None:
    values = resolve({}, home, str(tmp_path / "project"))
    assert (values["project"], values["tags"], values["labels"]) == (
        "users",
        ["a", "b"],
        {"team": "vision"},
    )


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("disk_paths", "/,/data", ["/", "/data"]),
        ("disk_paths", '["/a,b"]', ["/a,b"]),
        ("gpu_ids", "0,2", [0, 2]),
        ("process_tree", "off", False),
        ("labels", "team=vision,site=eu", {"team": "vision", "site": "eu"}),
        ("labels", '{"a": 1}', {"a": "1"}),
        ("tags", "a, b", ["a", "b"]),
        ("server", "https://runs.example.org/", "https://runs.example.org"),
        ("destinations", "http://a:1, printing:/x", ["http://a:1", "printing:/x"]),
        ("destinations", "files:/me@x, mail:me@example.org", ["files:/me@x", "mail:me@example.org"]),
        ("destinations", "cloudwatch:/T?include=a@b", ["cloudwatch:/T?include=a@b"]),
        ("sampling_interval", "0.1", 0.1),
        ("sampling_interval", "3600", 3600.0),
    ],
)
def test_values_of_environment_variables(name: str, text: str, value: object) -> None:
    assert resolve({}, {SETTINGS[name].variable: text}, "/")[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampling_interval", 0.05),
        ("sampling_interval", 3601),
        ("sampling_interval", "soon"),
        ("sampling_interval", float("nan")),
        ("sampling_interval", True),
        ("disk_paths", ["relative"]),
        ("disk_paths", 3),
        ("disk_paths", ["/a\0b"]),
        ("dir", "a\0b"),
        ("dir", "a\ud800b"),
        ("dir", 5),
        ("gpu_ids", [-1]),
        ("process_tree", "perhaps"),
        ("labels", "team"),
        ("server", "runs.example.org:8900"),
        ("server", "https://me:secret@runs.example.org"),
        ("destinations", [":/x"]),
        ("destinations", ["http://"]),
        ("destinations", ["remote_write:http://me:secret@host/write"]),
        ("mode", "shared"),
        ("resume", "auto"),
    ],
)
def test_error_names_setting_value_and_allowed_values(name: str, value: object) -> None:
    with pytest.raises(SettingError) as caught:
        Settings(**{name: value})
    message = str(caught.value)
    assert name in message
    assert repr(value) in message or "secret" in repr(value)
    assert "secret" not in message
    assert SETTINGS[name].allowed in message
    assert "argument" in message


def test_error_names_the_environment_variable() -> None:
    with pytest.raises(SettingError, match="environment variable RUNVITALS_SAMPLING_INTERVAL"):
        resolve({}, {"RUNVITALS_SAMPLING_INTERVAL": "often"}, "/")


def test_error_names_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "runvitals.toml"
    for text in ("sampling_interval = ", "smapling_interval = 3", 'sampling_interval = "x"'):
        file.write_text(text)
        with pytest.raises(SettingError, match=str(file)):
            resolve({}, {"XDG_CONFIG_HOME": "/nonexistent"}, str(tmp_path))


def test_init_refuses_an_unknown_kind_of_destination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNVITALS_DESTINATIONS", "files:/tmp/x,fridge:shelf")
    message = (
        r"destinations \(environment variable RUNVITALS_DESTINATIONS\): unknown destination 'fridge'; "
        "expected one of cloudwatch, files, http, https, mlflow, "
    )
    with pytest.raises(SettingError, match=message):
        start.init(dir=str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SettingError, match=r"destinations \(argument\): unknown destination 'oven'"):
        start.init(dir=str(tmp_path), settings={"destinations": ["oven"]})
    assert start.resolve_settings({"mode": "offline"})["destinations"] == ["files:/tmp/x", "fridge:shelf"]


def test_error_for_an_unknown_setting_suggests_the_closest() -> None:
    with pytest.raises(SettingError, match="did you mean sampling_interval"):
        Settings(smapling_interval=1)


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "-1", float("nan"), 10**400, True, "9" * 5000])
@pytest.mark.parametrize("name", ["sampling_interval", "finish_timeout", "delivery_timeout"])
def test_invalid_numbers_are_rejected(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"invalid setting {name} = .*: expected a number of seconds"):
        Settings(**{name: value})


def test_errors_reveal_no_secrets() -> None:
    secret = "/ https://me:hunter2@host/?token=hunter2 rvt_hunter2hunter2" * 9
    with pytest.raises(SettingError) as raised:
        find("sampling_interval", "argument").parse(secret, "x")
    assert "hunter2" not in str(raised.value)


def test_a_mended_name_reveals_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "/ https://me:hunter2@host/?token=hunter2 rvt_hunter2hunter2"
    assert "hunter2" not in find("project", "argument").parse(secret, "x")
    assert "hunter2" not in capsys.readouterr().err


def test_labels_are_truncated_before_redaction() -> None:
    labels = SETTINGS["labels"].check({"cell": "x" * 3_000_000})
    assert len(labels["cell"]) == limits.TEXT_CHARACTERS + 1


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "１２", "1_0", "0x10", "-1"])
def test_numbers_in_variables_are_plain(text: str) -> None:
    for name in ("SAMPLING_INTERVAL", "FINISH_TIMEOUT", "DELIVERY_TIMEOUT", "GPU_IDS"):
        with pytest.raises(SettingError, match=f"environment variable RUNVITALS_{name}.*expected"):
            resolve({}, {f"RUNVITALS_{name}": text}, "/")


@pytest.mark.parametrize("text", ["a\x7fb", "a\x85b", "a\x9bb", "a\x1bb"])
def test_names_have_no_control_characters(text: str) -> None:
    values = Settings(project=text, name=text, group=text, tags=[text]).given
    assert values == {"project": "a b", "name": "a b", "group": "a b", "tags": ["a b"]}


@given(st.text() | st.integers() | st.floats() | st.none())
def test_no_name_ends_a_training(name: object) -> None:
    mended = Settings(project=name, entity=name, name=name, group=name, job_type=name, run_id=name).given
    for setting, value in mended.items():
        assert SETTINGS[setting].check(value) == value, "what is valid stays as it is"
    for shown in ("name", "group", "job_type"):
        assert len(mended.get(shown) or "") <= 1000
        assert not has_control_characters(mended.get(shown) or "")


@given(st.text(), st.text())
def test_different_ids_stay_different(one: str, other: str) -> None:
    ids = {Settings(run_id=run_id).given["run_id"] for run_id in (one, other)}
    assert len(ids) == len({one, other})


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("meta-llama/Llama-3-8B lr=1e-4", "meta-llama/Llama-3-8B lr=1e-4"),
        ("x" * 300, "x" * 300),
        ("a\nb\tc", "a b c"),
        ("שלום \N{ROCKET}", "שלום \N{ROCKET}"),
        ("", None),
        (" \n ", None),
        (7, "7"),
    ],
)
def test_display_names(name: object, kept: str | None) -> None:
    assert Settings(name=name).given["name"] == kept


@pytest.mark.parametrize(
    ("name", "kept"),
    [("org/vision", "org-vision"), ("a\\b", "a-b"), ("line\nbreak", "line break"), ("..", "default"),
     (" - ", "default"), ("", "default"), ("p" * 300, "p" * 128), ("../../etc", "..-..-etc")],
)  # fmt: skip
def test_a_project_is_made_valid_with_a_warning(
    name: str, kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    setting_definition._warned.clear()
    assert Settings(project=name).given["project"] == kept
    warning = capsys.readouterr().err
    assert "invalid setting project" in warning
    assert f"{kept} is used instead" in warning


def test_an_id_is_made_valid_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert Settings(run_id="../../etc").given["run_id"] == "etc-13c1bb1e"
    assert "invalid setting run_id = '../../etc'" in capsys.readouterr().err


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(SettingError) as raised:
        Settings(mode="a/" * 10_000)
    assert len(str(raised.value)) < 1000
