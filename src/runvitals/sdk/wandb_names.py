"""Names of W&B's package that ours does not have, and what to use instead. Loaded when one is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LINKS = "an alias; W&B's own client links artifacts on a server of runvitals, too"
_CHARTS = "log a Table, or a figure of matplotlib or plotly itself"
_SWEEPS = "the page of the project on the server; the id is run.sweep_id"
_CONTROLLER = "runvitals.sweep() and runvitals.agent(); the server chooses the parameters"
_BOOSTING = "call log() in a callback of the library, or in the training loop"
_FRAMEWORK = "callbacks of frameworks are in runvitals.callbacks"
ABSENT: dict[str, dict[str, str]] = {
    "module": {
        "controller": _CONTROLLER,
        "plot": _CHARTS,
        "plot_table": _CHARTS,
        "visualize": _CHARTS,
        "Plotly": "log the figure of plotly itself",
        "Object3D": "log a figure of plotly, or save() the file",
        "Molecule": "log a picture, or save() the file",
        "Graph": "log a picture of the graph",
        "Classes": "draw classes into the image",
        "JoinedTable": "log a joined Table",
        "PartitionedTable": "log one Table",
        "link_artifact": _LINKS,
        "log_model": "log_artifact(path, name, type='model')",
        "use_model": "use_artifact(name).file()",
        "link_model": _LINKS,
        "restore": "download the file with runvitals.Client: client.run(id).files() and download()",
        "keras": _FRAMEWORK,
        "integration": _FRAMEWORK,
        "sklearn": _CHARTS,
        "xgboost": _BOOSTING,
        "lightgbm": _BOOSTING,
        "catboost": _BOOSTING,
        "gym": "log a Video",
        "tensorboard": "init(sync_tensorboard=True), or `runvitals import tensorboard:FOLDER` afterwards",
        "tensorflow": "init(sync_tensorboard=True), or `runvitals import tensorboard:FOLDER` afterwards",
        "jupyter": "use init() in the notebook; a new init() finishes the run before",
        "apis": "runvitals.Api",
        "PublicApi": "runvitals.Api",
        "InternalApi": "runvitals.Api",
        "mark_preempting": "nothing: the state of a run whose process was ended is known from its signal",
        "join": "finish()",
        "set_trace": "breakpoint()",
        "docker": "nothing: containers are recognised",
        "launch": "your scheduler",
    },
    "run": {
        "upsert_artifact": "log_artifact()",
        "finish_artifact": "log_artifact()",
        "link_artifact": _LINKS,
        "logged_artifacts": "the Artifacts tab of the run's page",
        "used_artifacts": "the Artifacts tab of the run's page",
        "log_model": "log_artifact(path, name, type='model')",
        "use_model": "use_artifact(name).file()",
        "link_model": _LINKS,
        "log_code": "save('**/*.py'); the git commit and changes are recorded anyway",
        "restore": "download the file with runvitals.Client: client.run(id).files() and download()",
        "mark_preempting": "nothing: the state of a run whose process was ended is known from its signal",
        "get_project_url": "url",
        "project_url": "url",
        "resumed": "step, which is above 0 in a run that continues",
        "sweep_url": _SWEEPS,
        "settings": "the attributes of the run; `runvitals settings` shows all settings",
        "start_time": "`runvitals.open_run(run.id).facts.started_ms`",
        "to_html": "url",
        "display": "url",
        "status": "`runvitals relay status`",
        "plot_table": _CHARTS,
        "join": "finish()",
        "write_logs": "print(), which is recorded",
    },
}


def absence_error(owner: str, name: str) -> AttributeError:
    """Return the error for a name that does not exist.

    Args:
        owner: `module` or `run`.
        name: the name that was asked for.

    Example:
        >>> absence_error("module", "visualize").args[0][:50]
        'runvitals does not have wandb.visualize; instead: '
    """
    instead = ABSENT[owner].get(name)
    if instead is not None:
        theirs = "wandb" if owner == "module" else "wandb.Run"
        return AttributeError(f"runvitals does not have {theirs}.{name}; instead: {instead}")
    what = "module 'runvitals'" if owner == "module" else "'Run' object"
    return AttributeError(f"{what} has no attribute {name!r}")


def of_run(name: str, run_id: str, project: str, entity: str | None, url: Callable[[], str | None]) -> Any:
    """Return an attribute of W&B's run that is another one of ours.

    Args:
        name: the attribute's name.

    Raises:
        AttributeError: see `absence_error`.
    """
    if name == "path":
        return "/".join([*([entity] if entity else []), project, run_id])
    if name == "get_url":
        return url
    if name == "project_name":
        return lambda: project
    if name == "sweep_id":
        from runvitals.sdk import sweep_parameters

        return sweep_parameters.sweep_of(run_id)
    raise absence_error("run", name)


def api_absence_error(owner: str, name: str) -> AttributeError:
    """Return the error for a name that W&B's `Api`, or a run of it, may have and ours has not."""
    return AttributeError(
        f"runvitals does not have wandb.{owner}.{name}; instead: runvitals.Client, or W&B's own Api"
    )
