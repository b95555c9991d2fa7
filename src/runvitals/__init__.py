"""runvitals: the vital signs of every training run.

    import runvitals

    run = runvitals.init(project="digits", config={"lr": 0.1})
    run.log({"loss": 0.5})
    run.finish()

The package has the names of W&B's that trainings use, so `import runvitals as wandb` works in most
scripts; see `docs/reference/wandb-compatibility.md`.

Everything is loaded on first use, so that the monitor, which is part of this package, stays small.
"""

from __future__ import annotations

import sys

from runvitals.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from runvitals import data_types as data_types
    from runvitals import plot as plot
    from runvitals.errors import CommError as CommError
    from runvitals.errors import Error as Error
    from runvitals.errors import UsageError as UsageError
    from runvitals.integration import sklearn as sklearn
    from runvitals.readers.journals import open_run
    from runvitals.readers.servers import Client
    from runvitals.readers.servers.reports.report import Report
    from runvitals.readers.servers.sweeps.functions import agent, sweep
    from runvitals.readers.servers.wandb.api import Api
    from runvitals.readers.servers.wandb.restored_file import restore as restore
    from runvitals.sdk import Run, SettingError, Settings, init
    from runvitals.sdk.artifacts.artifact import Artifact
    from runvitals.sdk.artifacts.time_to_live import ArtifactTTL as ArtifactTTL
    from runvitals.sdk.integrations.wandb import AlertLevel, login
    from runvitals.sdk.integrations.wandb import sagemaker_auth as sagemaker_auth
    from runvitals.sdk.media.annotations import Classes
    from runvitals.sdk.media.charts import plot_table as plot_table
    from runvitals.sdk.media.scenes import Object3D, box3d
    from runvitals.sdk.media.table import Table
    from runvitals.sdk.media.values import Audio, Histogram, Html, Image, Text, Video
    from runvitals.sdk.media.wandb_media import JoinedTable as JoinedTable
    from runvitals.sdk.media.wandb_media import Molecule as Molecule
    from runvitals.sdk.recorded_dict import RecordedDict

    config: RecordedDict
    """`Run.config` of the open run. RuntimeError if no run is open."""
    summary: RecordedDict
    """`Run.summary` of the open run. RuntimeError if no run is open."""
    run: Run | None
    """The open run of this process, or None."""
    link_artifact: Callable[..., Any]
    link_model: Callable[..., Any]
    log_code: Callable[..., Any]
    log_model: Callable[..., Any]
    use_model: Callable[..., Any]
    """Those of the open run. RuntimeError if no run is open."""
else:
    ModuleType = type(sys)

__all__ = [
    "AlertLevel",
    "Api",
    "Artifact",
    "Audio",
    "Classes",
    "Client",
    "Histogram",
    "Html",
    "Image",
    "Object3D",
    "Report",
    "Run",
    "SettingError",
    "Settings",
    "Table",
    "Text",
    "Video",
    "__version__",
    "agent",
    "alert",
    "box3d",
    "config",
    "define_metric",
    "finish",
    "init",
    "log",
    "log_artifact",
    "login",
    "open_run",
    "run",
    "save",
    "summary",
    "sweep",
    "unwatch",
    "use_artifact",
    "watch",
]

_IN_SDK = ("Run", "SettingError", "Settings", "init")
_MEDIA = ("Audio", "Histogram", "Html", "Image", "Text", "Video")
_SWEEPS = ("agent", "sweep")
_MODULES = {
    "Artifact": "sdk.artifacts.artifact",
    "ArtifactTTL": "sdk.artifacts.time_to_live",
    "Classes": "sdk.media.annotations",
    "Client": "readers.servers",
    "JoinedTable": "sdk.media.wandb_media",
    "Molecule": "sdk.media.wandb_media",
    "Object3D": "sdk.media.scenes",
    "Plotly": "sdk.media.wandb_media",
    "Report": "readers.servers.reports.report",
    "Table": "sdk.media.table",
    "box3d": "sdk.media.scenes",
    "open_run": "readers.journals",
    "plot_table": "sdk.media.charts",
    "restore": "readers.servers.wandb.restored_file",
}
_SUBMODULES = (
    "catboost", "data_types", "diffusers", "fastai", "integration", "keras", "lightgbm", "lightning",
    "mlflow", "plot", "plots", "sb3", "sklearn", "tensorboard", "tensorflow", "ultralytics", "xgboost",
)  # fmt: skip
_SWITCHES = ("accelerate", "transformers")
"""Modules that add a switch to their framework, which must be installed."""
_OF_ACTIVE_RUN = ("config", "summary")
_METHODS_OF_RUN = ("link_artifact", "link_model", "log_code", "log_model", "use_model")
_ERRORS = ("CommError", "Error", "UsageError", "errors")
_OF_WANDB = (
    "AlertLevel", "join", "login", "mark_preempting", "pin_config_keys", "require", "sagemaker_auth", "setup",
    "teardown", "termerror", "termlog", "termwarn", "util", "visualize",
)  # fmt: skip


def log(data: Mapping[str, Any] | None = None, step: int | None = None, commit: bool | None = None) -> None:
    """Log a row of values in the open run; see `Run.log`.

    Raises:
        RuntimeError: no run is open.
    """
    _active().log(data, step, commit)


def define_metric(
    name: str,
    summary: str = "last",
    *,
    x: str | None = None,
    hidden: bool | None = None,
    goal: str | None = None,
    **others: Any,
) -> None:
    """Choose how a metric of the open run is aggregated and shown; see `Run.define_metric`.

    Raises:
        RuntimeError: no run is open.
    """
    _active().define_metric(name, summary, x=x, hidden=hidden, goal=goal, **others)


def save(pattern: str | None = None, base: str | None = None, **others: Any) -> list[str]:
    """Record copies of files in the open run; see `Run.save`.

    Raises:
        RuntimeError: no run is open.
    """
    return _active().save(pattern, base, **others)


def log_artifact(artifact_or_path: Any, *arguments: Any, **others: Any) -> Artifact:
    """Record a version of files in the open run; see `Run.log_artifact`.

    Raises:
        RuntimeError: no run is open.
    """
    return _active().log_artifact(artifact_or_path, *arguments, **others)


def use_artifact(artifact_or_name: Any, *arguments: Any, **others: Any) -> Artifact:
    """Record that the open run uses a version of an artifact; see `Run.use_artifact`.

    Raises:
        RuntimeError: no run is open.
    """
    return _active().use_artifact(artifact_or_name, *arguments, **others)


def alert(title: str, text: str = "", level: str = "info", wait_duration: Any = None) -> None:
    """Record an event in the open run that a user should notice; see `Run.alert`.

    Raises:
        RuntimeError: no run is open.
    """
    _active().alert(title, text, level, wait_duration)


def watch(models: Any, *arguments: Any, **others: Any) -> None:
    """Log gradients and parameters of PyTorch models in the open run; see `Run.watch`.

    Raises:
        RuntimeError: no run is open.
    """
    _active().watch(models, *arguments, **others)


def unwatch(models: Any = None) -> None:
    """End `watch` for these models, or for all; see `Run.unwatch`.

    Raises:
        RuntimeError: no run is open.
    """
    _active().unwatch(models)


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    """Finish the open run, if there is one; see `Run.finish`."""
    from runvitals.sdk import start

    opened = start.current_run()
    if opened is not None:
        opened.finish(exit_code)


def _active() -> Run:
    from runvitals import sdk

    return sdk.active()


class _Package(ModuleType):
    """This module: `runvitals.config |= …` assigns to the open run's, not to the module."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _OF_ACTIVE_RUN:
            setattr(_active(), name, value)
        else:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
__path__.append(f"{__path__[0]}/integration")  # so that `runvitals.keras` is found, as `wandb.keras`


def __getattr__(name: str) -> object:
    if name in _IN_SDK:
        from runvitals import sdk

        value: object = getattr(sdk, name)
        globals()[name] = value
        return value
    if name in _MEDIA:
        from runvitals.sdk.media import values

        value = getattr(values, name)
        globals()[name] = value
        return value
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"runvitals.{_MODULES[name]}"), name)
    if name in _OF_ACTIVE_RUN:
        return _of_active_run(name)
    if name in _METHODS_OF_RUN:
        from functools import partial

        return partial(_call_run, name)
    if name == "run":
        from runvitals.sdk import start

        return start.current_run()
    if name in _SUBMODULES or name in _SWITCHES:
        return _submodule(name)
    if name in _SWEEPS:
        from runvitals.readers.servers.sweeps import functions

        return getattr(functions, name)
    return _of_wandb(name)


def _submodule(name: str) -> object:
    """Return a module of the package.

    Raises:
        AttributeError: its framework is not installed. Tools that list the package expect such an error.
    """
    from importlib import import_module

    try:
        return import_module(f"runvitals.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(str(error)) from error


def _call_run(method: str, *arguments: object, **others: object) -> object:
    return getattr(_active(), method)(*arguments, **others)


def _of_active_run(name: str) -> object:
    """Return an attribute of the open run.

    Raises:
        NotOpenAttribute: no run is open. `hasattr` and tools that list the package expect such an error.
    """
    from runvitals.errors import NotOpen, NotOpenAttribute

    try:
        return getattr(_active(), name)
    except NotOpen as error:
        raise NotOpenAttribute(str(error)) from None


def __dir__() -> list[str]:
    """Return the public names, with those that are loaded on first use: for completion in shells."""
    return sorted({*globals(), *__all__, *_ERRORS, *_METHODS_OF_RUN, *_MODULES, *_OF_WANDB, *_SUBMODULES})


def _of_wandb(name: str) -> object:
    """Return a name of W&B's package that is not one of ours already.

    Raises:
        AttributeError: there is none; for one that W&B's package has, with what to use instead.
    """
    if name == "Api":
        from runvitals.readers.servers.wandb.api import Api

        return Api
    if name in _ERRORS:
        import runvitals.errors as errors  # `from runvitals import` would ask for it here again

        return errors if name == "errors" else getattr(errors, name)
    if name in _OF_WANDB:
        from runvitals.sdk.integrations import wandb as functions

        return getattr(functions, name)
    if name.startswith("_"):
        raise AttributeError(f"module 'runvitals' has no attribute {name!r}")
    from runvitals.sdk import wandb_names

    raise wandb_names.absence_error("module", name)
