"""Names of W&B's package that ours does not have, and what to use instead. Loaded when one is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTROLLER = "runvitals.sweep() and runvitals.agent(); the server chooses the parameters"
ABSENT: dict[str, dict[str, str]] = {
    "module": {
        "Bokeh": "log an Html page of the figure",
        "BoundingBoxes2D": "Image(boxes=)",
        "EvalTable": "log a Table of the predictions",
        "controller": _CONTROLLER,
        "Graph": "log a picture of the graph",
        "ImageMask": "Image(masks=)",
        "WBTraceTree": "Trace, of runvitals.sdk.data_types.trace_tree",
        "PartitionedTable": "log one Table",
        "gym": "log a Video",
        "sacred": "call init() and log() in the experiment's functions",
        "jupyter": "use init() in the notebook; a new init() finishes the run before",
        "apis": "runvitals.Api",
        "wandb_lib": "login(); the key is kept by `runvitals login`",
        "PublicApi": "runvitals.Api",
        "InternalApi": "runvitals.Api",
        "set_trace": "breakpoint()",
        "docker": "nothing: containers are recognised",
        "launch": "your scheduler",
    },
    "run": {
        "config_static": "config",
        "starting_step": "step, before the first row is logged",
        "sync_dir": "dir",
        "upsert_artifact": "log_artifact()",
        "finish_artifact": "log_artifact()",
        "logged_artifacts": "the Artifacts tab of the run's page",
        "used_artifacts": "the Artifacts tab of the run's page",
        "settings": "the attributes of the run; `runvitals settings` shows all settings",
        "start_time": "`runvitals.open_run(run.id).facts.started_ms`",
        "status": "`runvitals relay status`",
        "write_logs": "print(), which is recorded",
    },
}

_CALLS = "init() and log() around the calls"
_STEPS = "init() and log() in the functions of the steps"
INTEGRATIONS = {
    "dspy": _CALLS,
    "gym": "log a Video",
    "huggingface": "`import runvitals.transformers`",
    "kfp": _STEPS,
    "langchain": _CALLS,
    "metaflow": _STEPS,
    "openai": _CALLS,
    "prodigy": "log a Table of the examples",
    "sacred": _STEPS,
    "sagemaker": "sagemaker_auth()",
    "torch": "run.watch(model)",
    "weave": "a tool for traces of language models",
}
"""What to use instead of those modules of `wandb.integration` that ours does not have."""


def absence_error(owner: str, name: str) -> AttributeError:
    """Return the error for a name that does not exist.

    Args:
        owner: `module` or `run`.
        name: the name that was asked for.

    Example:
        >>> absence_error("module", "Bokeh").args[0]
        'runvitals does not have wandb.Bokeh; instead: log an Html page of the figure'
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
    if name in ("project_url", "get_project_url"):
        address = _project_url(project, entity, url())
        return address if name == "project_url" else lambda: address
    if name in ("sweep_id", "sweep_url", "get_sweep_url"):
        from runvitals.sdk import sweep_parameters

        sweep = sweep_parameters.sweep_of(run_id)
        if name == "sweep_id":
            return sweep
        of_project = _project_url(project, entity, url())
        page = f"{of_project}/sweeps?sweep={sweep}" if sweep and of_project and entity else None
        return page if name == "sweep_url" else lambda: page
    raise absence_error("run", name)


def _project_url(project: str, entity: str | None, run_url: str | None) -> str | None:
    """Return the page of a project; None without a server."""
    if run_url is None:
        return None
    server = run_url.rpartition("/runs/")[0]
    return f"{server}/{entity}/{quote(project)}" if entity else f"{server}/projects/{quote(project)}"


def api_absence_error(owner: str, name: str) -> AttributeError:
    """Return the error for a name that W&B's `Api`, or a run of it, may have and ours has not."""
    return AttributeError(
        f"runvitals does not have wandb.{owner}.{name}; instead: runvitals.Client, or W&B's own Api"
    )
