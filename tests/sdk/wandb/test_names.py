"""Names, arguments and environment variables of W&B's package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import runvitals
from runvitals.monitoring.settings import wandb_arguments
from runvitals.monitoring.settings.settings import SETTINGS, SettingError, Settings
from runvitals.sdk import wandb_environment, wandb_names, wandb_run
from runvitals.sdk.recorded_dict import RecordedDict
from runvitals.sdk.start import _spelling
from runvitals.sdk.watching import Watching
from tests.patience import PATIENCE_S
from tests.sdk.wandb import name_table
from tests.server.serving import serving

DEFAULTS: dict[str, tuple[Any, str]] = {
    name: (setting.default, "default") for name, setting in SETTINGS.items()
}


@pytest.fixture(autouse=True)
def without_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have imported W&B's package."""
    monkeypatch.delitem(__import__("sys").modules, "wandb", raising=False)
    monkeypatch.setattr(wandb_environment, "_read", [])


@pytest.mark.parametrize("name", sorted(wandb_names.ABSENT["module"]))
def test_absent_name_says_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError, match=f"does not have wandb.{name}; instead: "):
        getattr(runvitals, name)


def test_errors_have_the_names_of_wandb() -> None:
    names = ("AuthenticationError", "CommError", "UnsupportedError", "UsageError")
    assert all(issubclass(getattr(runvitals.errors, name), runvitals.Error) for name in names)
    run = runvitals.init(mode="disabled", reinit=True)
    run.finish()
    for invalid in (
        lambda: runvitals.init(fork_from="x?_step=1", mode="disabled"),
        lambda: runvitals.init(settings={"nothing": 1}, mode="disabled"),
    ):
        with pytest.raises(runvitals.errors.UsageError):
            invalid()
    with pytest.raises(runvitals.errors.UnsupportedError, match="fork_from is not supported"):
        runvitals.init(fork_from="x?_step=1", mode="disabled")


def test_a_finished_run_is_an_error_of_usage(tmp_path: Path) -> None:
    run = runvitals.init(mode="offline", dir=str(tmp_path), reinit=True, settings={"quiet": True})
    run.finish()
    with pytest.raises(runvitals.errors.UsageError, match="is finished"):
        run.log({"loss": 1})


def test_a_key_that_the_server_does_not_accept(tmp_path: Path) -> None:
    rejected = pytest.raises(runvitals.errors.AuthenticationError, match="rejected the token")
    with serving(tmp_path, token_required=True) as served, rejected:
        runvitals.login(key="wrong", host=served.url)


def test_absent_names_of_a_run_are_not_attributes() -> None:
    run = runvitals.init(mode="disabled", reinit=True)
    assert [name for name in wandb_names.ABSENT["run"] if hasattr(run, name)] == []
    name = "upsert_artifact"
    with pytest.raises(AttributeError, match=r"wandb.Run.upsert_artifact; instead: log_artifact\("):
        getattr(run, name)("x")
    assert sorted(wandb_run.ABSENT) == sorted(wandb_names.ABSENT["run"])
    assert (run.path, run.get_url(), run.project_name(), run.sweep_id) == (
        "default/disabled",
        None,
        "default",
        None,
    )


def test_environment_is_read_where_ours_is_not_set(capsys: pytest.CaptureFixture[str]) -> None:
    environ = {
        "WANDB_PROJECT": "vision", "WANDB_NAME": "first", "WANDB_RUN_ID": "abc", "WANDB_RUN_GROUP": "g",
        "WANDB_JOB_TYPE": "eval", "WANDB_TAGS": "a,b", "WANDB_NOTES": "n", "WANDB_MODE": "dryrun",
        "WANDB_DIR": "/data", "WANDB_RESUME": "auto", "WANDB_BASE_URL": "https://runs.example.org",
    }  # fmt: skip
    expected = {**DEFAULTS, "project": ("mine", "environment variable RUNVITALS_PROJECT")}
    for _ in range(2):
        assert wandb_environment.read(expected, environ) == {
            "name": "first", "run_id": "abc", "group": "g", "job_type": "eval", "tags": ["a", "b"],
            "notes": "n", "mode": "offline", "dir": "/data", "resume": "allow",
            "server": "https://runs.example.org",
        }  # fmt: skip
    stderr = capsys.readouterr().err
    assert stderr.count("read from W&B's environment variables, because ours are not set: ") == 1
    assert "WANDB_PROJECT" not in stderr


def test_init_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "vision")
    monkeypatch.setenv("WANDB_TAGS", "a,b")
    monkeypatch.setenv("WANDB_DISABLED", "true")
    run = runvitals.init(reinit=True, group="g")
    assert (run.project, run.tags, run.disabled, run.group) == ("vision", ("a", "b"), True, "g")
    run = runvitals.init(reinit=True, project="mine", mode="disabled")
    assert run.project == "mine"


@pytest.mark.parametrize(
    ("environ", "values"),
    [
        ({"WANDB_DISABLED": "true"}, {"mode": "disabled"}),
        ({"WANDB_MODE": "shared"}, {"mode": "online"}),
        ({"WANDB_SILENT": "true"}, {"quiet": True}),
        ({"WANDB_BASE_URL": "https://api.wandb.ai"}, {}),
        ({"WANDB_BASE_URL": "https://acme.WANDB.ai/"}, {}),
        ({"WANDB_RESUME": "never"}, {"resume": "never"}),
        ({"WANDB_ENTITY": "team"}, {}),  # the setting `entity` reads it itself
    ],
)
def test_values_of_the_environment(environ: dict[str, str], values: dict[str, Any]) -> None:
    assert wandb_environment.read(DEFAULTS, environ) == values


def test_environment_belongs_to_wandb_where_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wandb", runvitals)
    assert wandb_environment.read(DEFAULTS, {"WANDB_MODE": "disabled"}) == {}


def test_invalid_variable_is_named() -> None:
    with pytest.raises(SettingError, match="environment variable WANDB_MODE"):
        wandb_environment.read(DEFAULTS, {"WANDB_MODE": "sometimes"})


def test_settings_of_wandb(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(
        x_stats_sampling_interval=5.0, run_group="g", silent=True, start_method="thread", mode="dryrun"
    )
    assert settings.given == {"sampling_interval": 5.0, "group": "g", "quiet": True, "mode": "offline"}
    assert "no effect here: start_method" in capsys.readouterr().err
    with pytest.raises(SettingError, match="did you mean project"):
        Settings(projekt="p")
    with pytest.raises(SettingError, match="use login"):
        Settings(api_key="x" * 40)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"fork_from": "abc?_step=3"}, "fork_from is not supported"),
        ({"resume_from": "abc?_step=3"}, "resume_from is not supported"),
        ({"projekt": "p"}, "unexpected keyword argument 'projekt'"),
    ],
)
def test_arguments_of_init_that_do_not_exist(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        runvitals.init(mode="disabled", **arguments)


def test_a_run_beside_the_open_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNVITALS_RUN_ID", "job")
    how: dict[str, Any] = {"mode": "offline", "dir": str(tmp_path), "settings": {"quiet": True}}
    first = runvitals.init(reinit=True, **how)
    second = runvitals.init(reinit="create_new", config={"lr": 0.1}, **how)
    third = runvitals.init(id="third", reinit="create_new", **how)
    assert (runvitals.run, third.id) == (first, "third")
    assert second.id != first.id
    runvitals.log({"loss": 1})
    second.log({"loss": 2})
    for run in (third, second, first):
        run.finish()
    read = [runvitals.open_run(run.id, str(tmp_path)) for run in (first, second)]
    assert [(dict(run.summary), dict(run.config)) for run in read] == [
        ({"loss": 1}, {}),
        ({"loss": 2}, {"lr": 0.1}),
    ]


def test_reinit_finishes_the_open_run() -> None:
    first = runvitals.init(mode="disabled", reinit=True)
    assert runvitals.init(mode="disabled") is first
    assert runvitals.init(mode="disabled", reinit="finish_previous") is not first
    runvitals.finish()
    runvitals.finish()


def test_resume_and_mode_as_wandb_spells_them() -> None:
    values = {True: "allow", False: None, "auto": "allow", "must": "must", "dryrun": "offline"}
    assert {value: _spelling(value) for value in values} == values


def test_configuration_without_some_keys() -> None:
    run = runvitals.init(mode="disabled", reinit=True, config={"a": 1, "b": 2}, config_exclude_keys=["b"])
    assert run.config == {"a": 1}
    run = runvitals.init(mode="disabled", reinit=True, config={"a": 1, "b": 2}, config_include_keys=["b"])
    assert run.config == {"b": 2}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"lr": 0.1, "layers": [1]}'),
        ("config.yaml", "lr: 0.1\nlayers: [1]\n"),
        (
            "config-defaults.yaml",
            "wandb_version: 1\nlr:\n  desc: rate\n  value: 0.1\nlayers:\n  value: [1]\n",
        ),
    ],
)
def test_configuration_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    run = runvitals.init(mode="disabled", reinit=True, config=str(tmp_path / name))
    assert run.config == {"lr": 0.1, "layers": [1]}


def test_a_file_that_is_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("- 1\n")
    with pytest.raises(ValueError, match="expected names and values"):
        runvitals.init(mode="disabled", reinit=True, config=str(tmp_path / "config.yaml"))


def test_update_of_config_with_allow_val_change() -> None:
    written: list[Any] = []
    config = RecordedDict(lambda changes, removed: written.append(dict(changes)), print)
    config.update({"a": 1}, allow_val_change=True)
    config.update({"b": 2}, True)
    config.setdefaults({"a": 9, "c": 3})
    assert written == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert config.as_dict() == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: runvitals.Table(log_mode="MUTABLE"), "log_mode is not supported"),
        (lambda: runvitals.Video("x.mp4", speed=1), "unexpected keyword argument 'speed'"),
    ],
)
def test_arguments_of_media_that_do_not_exist(make: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        make()


def test_files_are_saved_when_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.txt").write_text("first")
    run = runvitals.init(mode="offline", dir=str(tmp_path / "data"), reinit=True, settings={"quiet": True})
    with pytest.raises(ValueError, match="unknown policy 'never'; expected now, end or live"):
        run.save("x", policy="never")
    with pytest.raises(ValueError, match="is not in the base"):
        run.save("/x/y", base_path=".", policy="end")
    assert run.save("*.txt", policy="live") == ["live.txt"]
    assert run.save("later/*.pt", policy="end") == []
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "model.pt").write_text("weights")
    (tmp_path / "live.txt").write_text("last")
    run.finish()
    ended = runvitals.open_run(run.id, str(tmp_path / "data"))
    contents = {file.name: Path(str(file.path)).read_text() for file in ended.files()}
    assert contents == {"live.txt": "last", "later/model.pt": "weights"}


def test_code_and_models_are_artifacts(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "package" / "__pycache__").mkdir(parents=True)
    for name in ("train.py", "package/a.py", "package/__pycache__/a.py", "notes.txt"):
        (source / name).write_text("x = 1\n")
    run = runvitals.init(mode="offline", dir=str(tmp_path / "data"), reinit=True, settings={"quiet": True})
    code = run.log_code(str(source))
    assert code is not None
    assert sorted(file.path for file in code.wait().files()) == ["package/a.py", "train.py"]
    assert run.log_code(str(source), include_fn=lambda path: path.endswith(".rs")) is None
    model = run.log_model(str(source / "notes.txt"), name="weights")
    assert (model.name.partition(":")[0], model.type) == ("weights", "model")
    run.finish()


def test_a_run_says_whether_it_was_resumed(tmp_path: Path) -> None:
    how: dict[str, Any] = {"mode": "offline", "dir": str(tmp_path), "settings": {"quiet": True}}
    run = runvitals.init(id="a", reinit=True, **how)
    assert not run.resumed
    run.log({"loss": 1})
    run.log()
    run.finish()
    run = runvitals.init(id="a", resume="must", **how)
    assert (run.resumed, run.step) == (True, 2)
    run.finish()


def test_the_best_value_is_the_summary(tmp_path: Path) -> None:
    run = runvitals.init(mode="offline", dir=str(tmp_path), reinit=True, settings={"quiet": True})
    run.define_metric("acc", summary="best", goal="maximize")
    run.define_metric("loss", summary="best")
    for value in (1, 3, 2):
        run.log({"acc": value, "loss": value})
    run.finish()
    assert dict(runvitals.open_run(run.id, str(tmp_path)).summary) == {"acc": 3, "loss": 1}


def test_columns_of_a_table() -> None:
    table = runvitals.Table()
    table.add_column("n", [1, 2])
    table.add_column("word", ["one", "two"])
    assert (table.columns, table.data) == (["n", "word"], [[1, "one"], [2, "two"]])
    with pytest.raises(ValueError, match="a column of 1 values for 2 rows"):
        table.add_column("more", [1])


class Hook:
    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self.hooks, self.hook = hooks, hook
        hooks.append(hook)

    def remove(self) -> None:
        self.hooks.remove(self.hook)


class Parameter:
    """Behaves as a parameter of PyTorch does, over a NumPy array."""

    def __init__(self, values: Any, requires_grad: bool = True) -> None:
        self.values, self.requires_grad, self.hooks = values, requires_grad, []  # type: ignore[var-annotated]
        self.shape = values.shape

    def detach(self) -> Any:
        return self.values

    def register_hook(self, hook: Any) -> Hook:
        return Hook(self.hooks, hook)


class Module:
    """Behaves as a module of PyTorch does."""

    def __init__(self) -> None:
        import numpy

        self.hooks: list[Any] = []
        self.parameters = {
            "linear.weight": Parameter(numpy.arange(100_000.0).reshape(100, 1000)),
            "linear.bias": Parameter(numpy.array(2.0)),
            "frozen": Parameter(numpy.zeros(3), requires_grad=False),
            "empty": Parameter(numpy.zeros(0)),
        }

    def named_parameters(self) -> Any:
        return self.parameters.items()

    def register_forward_hook(self, hook: Any) -> Hook:
        return Hook(self.hooks, hook)

    def run_pass(self) -> None:
        for hook in self.hooks:
            hook(self, (), None)
        for parameter in self.parameters.values():
            for hook in parameter.hooks:
                hook(parameter)


def test_watch_logs_gradients_and_parameters_every_so_often() -> None:
    rows: list[Any] = []
    watching = Watching(lambda row, commit: rows.append((dict(row), commit)))
    model, other = Module(), Module()
    watching.add((model, other), "all", 2, None)
    model.run_pass()
    assert rows == []
    model.run_pass()
    assert all(commit is False for _, commit in rows)
    named = {name: value.item(None)["value"] for row, _ in rows for name, value in row.items()}  # type: ignore[arg-type]
    assert sorted(named) == [
        "gradients/linear.bias", "gradients/linear.weight",
        "parameters/frozen", "parameters/linear.bias", "parameters/linear.weight",
    ]  # fmt: skip
    weight = named["parameters/linear.weight"]
    assert (weight["count"], weight["min"], weight["max"]) == (100_000, 0.0, 99_999.0)
    assert named["gradients/linear.bias"]["counts"] == [1]
    with pytest.raises(ValueError, match="already watched"):
        watching.add(model, "all", 2, None)
    watching.stop(model)
    assert (model.hooks, model.parameters["linear.weight"].hooks, len(other.hooks)) == ([], [], 1)
    watching.stop()
    assert other.hooks == []


@pytest.mark.parametrize(
    ("model", "log", "frequency", "error"),
    [("text", "all", 1, TypeError), (Module(), "weights", 1, ValueError), (Module(), "all", 0, ValueError)],
)
def test_watch_refuses(model: Any, log: str, frequency: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"watch\(\)"):
        Watching(print).add(model, log, frequency, None)


def test_login_without_a_server_needs_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("RUNVITALS_SERVER", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert runvitals.login() is True
    with pytest.raises(ValueError, match="but no server"):
        runvitals.login(key="x" * 40)


def test_key_of_the_environment_is_for_its_server_only(tmp_path: Path) -> None:
    from runvitals.base import stored_keys

    environ = {"XDG_CONFIG_HOME": str(tmp_path), "WANDB_API_KEY": "secret"}
    assert stored_keys.token("https://runs.example.org", environ) is None
    environ["WANDB_BASE_URL"] = "https://runs.example.org/"
    assert stored_keys.token("https://runs.example.org", environ) == "secret"
    assert stored_keys.token("https://other.example.org", environ) is None


def test_events_of_tensorboard_become_rows(tmp_path: Path) -> None:
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from runvitals.sdk import tensorboard_writer

    rows: list[Any] = []

    class Opened:
        def log(self, row: Any, step: int) -> None:
            rows.append((row, step))

    original = EventFileWriter.add_event
    try:
        tensorboard_writer.follow(lambda: Opened())
        tensorboard_writer.follow(lambda: Opened())
        writer = EventFileWriter(str(tmp_path))
        value = summary_pb2.Summary.Value(tag="loss", simple_value=0.5)
        image = summary_pb2.Summary.Value(tag="image", image=summary_pb2.Summary.Image(height=1))
        writer.add_event(event_pb2.Event(step=3, summary=summary_pb2.Summary(value=[value, image])))
        writer.close()
    finally:
        EventFileWriter.add_event = original  # type: ignore[method-assign]
    assert rows == [({"loss": 0.5}, 3)]
    assert next(tmp_path.iterdir()).stat().st_size > 0


def test_each_name_of_wandb_works_or_says_what_to_use(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sdk.wandb.name_table", str(tmp_path / "page")]
    subprocess.run(command, cwd=Path(__file__).parents[3], check=True, timeout=PATIENCE_S)
    page, written = (tmp_path / "page").read_text(), name_table.PAGE.read_text()
    assert [line for line in page.splitlines() if line.endswith(f"| {name_table.ABSENT} |  |")] == []
    if f"version {name_table.version()} " in written:
        assert page == written, "run python -m tests.sdk.wandb.name_table"
    else:
        listed = {line.split("`")[1]: line for line in written.splitlines() if line.startswith("| `")}
        rows = [line for line in page.splitlines() if line.startswith("| `")]
        assert [row for row in rows if listed.get(row.split("`")[1], row) != row] == []


def test_statistics_of_the_machine_can_be_turned_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert Settings(x_disable_stats=True).given == {"collectors": ["cpu", "-cpu"]}
    assert Settings(x_disable_stats=False).given == {}


def test_modules_of_wandb_are_importable() -> None:
    from importlib import import_module

    import runvitals.data_types
    import runvitals.integration.keras

    assert import_module("runvitals.keras").WandbCallback.__name__ == "WandbCallback"
    assert import_module("runvitals.lightgbm").__all__
    xgboost = import_module("runvitals.integration.xgboost")
    assert xgboost.WandbCallback is import_module("runvitals.xgboost").WandbCallback
    assert runvitals.errors.term.termlog is runvitals.termlog
    assert runvitals.data_types.Image is runvitals.Image
    with pytest.raises(AttributeError, match=r"wandb\.integration\.openai; instead: init"):
        runvitals.integration.openai  # noqa: B018


def test_the_key_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", "https://runs.example.org")
    runvitals.sagemaker_auth({"MORE": "1"}, str(tmp_path), api_key="secret")
    file = tmp_path / "secrets.env"
    assert file.read_text() == "WANDB_BASE_URL=https://runs.example.org\nWANDB_API_KEY=secret\nMORE=1\n"
    assert file.stat().st_mode & 0o077 == 0


def test_an_artifact_is_saved_in_the_open_run(tmp_path: Path) -> None:
    how: dict[str, Any] = {"mode": "offline", "dir": str(tmp_path / "data"), "settings": {"quiet": True}}
    (tmp_path / "model.txt").write_text("weights")
    with runvitals.init(reinit=True, **how):
        artifact = runvitals.Artifact("weights", "model")
        artifact.add_file(str(tmp_path / "model.txt"))
        artifact.save()
        assert artifact.wait().version == "v0"
        artifact.save()


def test_a_saved_file_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.txt").write_text("weights")
    monkeypatch.chdir(tmp_path)
    run = runvitals.init(mode="offline", dir=str(tmp_path / "data"), reinit=True, settings={"quiet": True})
    run.save("model.txt")
    with run.restore("model.txt", root=str(tmp_path / "other")) as file:
        assert file.read() == "weights"
    with pytest.raises(FileNotFoundError, match="has saved no file 'nothing'"):
        run.restore("nothing")
    run.finish()


def test_an_argument_without_effect_says_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    wandb_arguments.of_init({"save_code": True, "monitor_gym": False})
    assert "save_code of wandb.init() has no effect here; use save()\n" in capsys.readouterr().err
