"""`init` starts a run from its settings; `active` returns the open one."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from threading import RLock
from typing import Any

from runvitals.errors import NotOpen
from runvitals.journal import paths
from runvitals.model.values import Sanitizer
from runvitals.monitoring.settings.messages import ANNOUNCED, notify
from runvitals.monitoring.settings.settings import MODES, RESUMES, SETTINGS, SettingError, Settings, trace
from runvitals.sdk import spawned_worker
from runvitals.sdk.attachment import Attachment, ResumeState
from runvitals.sdk.data_folder import usable_directory, working_folder
from runvitals.sdk.delivery import check_kinds
from runvitals.sdk.identity import RunIdentity, identify, new_run_id
from runvitals.sdk.logged_values import distinct_tags
from runvitals.sdk.recorded_dict import pairs
from runvitals.sdk.run import Run

_IN_SWEEP = "RUNVITALS_SWEEP_PARAMETERS"
"""Set in the environment of a run that the agent of a sweep has started."""

_active: Run | None = None
_beside: list[Run] = []
"""Runs that were opened with `reinit="create_new"`: beside the open one, and not it."""
_hooked = False
_lock = RLock()  # several threads may call `init`, and so may a handler of a signal that interrupts it


def init(
    project: str | None = None,
    name: str | None = None,
    config: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    group: str | None = None,
    job_type: str | None = None,
    id: str | None = None,
    resume: str | bool | None = None,
    dir: str | None = None,
    mode: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    entity: str | None = None,
    console: bool | None = None,
    reinit: bool | str | None = None,
    sync_tensorboard: bool | None = None,
    config_exclude_keys: Collection[str] | None = None,
    config_include_keys: Collection[str] | None = None,
    **others: Any,
) -> Run:
    """Start a run. From now on this process and its children are monitored.

    Takes 1 to 3 ms; starts no thread, does not fork, and does not wait.

    If a run is already open, a script gets that run back; in a notebook the open run is finished and a new
    one starts. The ranks of one job (torchrun, Slurm, Ray, MPI, Kubernetes) share a single run automatically.

    Args:
        project, name, tags, notes, group, job_type: describe the run, for search and grouping.
        config: hyper-parameters: a mapping, an object with attributes such as `argparse.Namespace`, or the
            path of a YAML or JSON file.
        id: run id; default: `RUNVITALS_RUN_ID`, else eight letters and digits, derived from the launcher's
            job or random. A run without a name gets its job's name, or one such as `brave-otter-417`.
        resume: `allow` (default: continue the run with this id if it exists), `must`, or `never`. True and
            `auto`, as W&B has them, mean `allow`.
        dir: data folder; default: `RUNVITALS_DIR`, else the user's data home.
        mode: `online`, `offline`, or `disabled` (no files, no process, no cost).
        settings: all other settings, see `Settings`.
        entity: team or user that the run belongs to, on a server with accounts.
        console: False: do not record what the program prints.
        reinit: True or `finish_previous` finish a run that is open, so that a new one starts. `create_new`
            starts one beside it: `runvitals.log()` and `runvitals.run` stay with the one that was open, and
            only that one records what the program prints.
        sync_tensorboard: also log what the process writes with TensorBoard's `SummaryWriter`.
        config_exclude_keys, config_include_keys: names of `config` to leave out, or the only ones to record.
        others: further arguments of `wandb.init`, which have no effect here.

    Raises:
        SettingError: a setting has an invalid value, wherever it was set, or `resume` conflicts with what
            exists.
        TypeError: an unknown argument, or one of W&B's that is not supported.

    Example:
        >>> run = runvitals.init(project="digits", config={"lr": 0.1})
        >>> run.log({"loss": 0.5})
        >>> run.finish()
    """
    finish_open = bool(others or reinit is not None) and _finishes_open_run(others, reinit)
    with _lock:
        arguments = {
            "project": project, "name": name, "tags": tags, "notes": notes, "group": group,
            "job_type": job_type, "run_id": id, "resume": _spelling(resume), "dir": dir,
            "mode": _spelling(mode), "entity": entity, "console": console,
        }  # fmt: skip
        config = _choose_entries(config, config_exclude_keys, config_include_keys)
        if reinit == "create_new":
            return _open_beside(arguments, settings, config)
        open_run = _open_here()
        if open_run is not None:
            if not finish_open and not _in_notebook():
                _notify_ignored(open_run, {**arguments, "config": config, "settings": settings})
                return open_run
            open_run.finish()
        chosen = _as_arguments(settings)
        chosen.update(Settings(**arguments).given)
        run = _open(resolve_settings(_without_place(chosen) if _IN_SWEEP in os.environ else chosen))
        _configure(run, config)
    if sync_tensorboard or others.get("tensorboard"):  # its old name
        _follow_tensorboard()
    return run


def _follow_tensorboard() -> None:
    from runvitals.sdk import tensorboard_writer  # few scripts ask for it

    tensorboard_writer.follow(current_run)


def _notify_ignored(run: Run, arguments: Mapping[str, Any]) -> None:
    """Print which arguments have no effect because a run is open that differs from them."""
    present = {
        "project": run.project, "name": run.name, "tags": list(run.tags), "notes": run.notes,
        "group": run.group, "job_type": run.job_type, "run_id": run.id, "entity": run.entity,
    }  # fmt: skip
    ignored = [
        "id" if name == "run_id" else name
        for name, value in arguments.items()
        if value is not None
        and name != "resume"  # the open run is what a run with its id goes on in
        and (name not in present or (list(value) if name == "tags" else value) != present[name])
    ]
    if ignored:
        notify(
            f"init(): run {run.id} is already open, so {', '.join(ignored)} had no effect; "
            "init(reinit=True) finishes it and starts a new run"
        )


def _open(values: dict[str, Any]) -> Run:
    """Start a run and make it the open one."""
    global _active
    _active = _run_without_record(values) if values["mode"] == "disabled" else _start_recording(values)
    return _active


def _open_beside(
    arguments: Mapping[str, Any],
    settings: Settings | Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
) -> Run:
    """Start a run beside the open one. The launcher's job names the open one, so it has an id of its own."""
    chosen = {**_as_arguments(settings), **Settings(**arguments).given}
    values = resolve_settings({"run_id": new_run_id(), **chosen, "console": False})
    run = _run_without_record(values) if values["mode"] == "disabled" else _start_recording(values)
    _beside[:] = [other for other in _beside if not other.finished] + [run]
    if config is not None:
        run.config.update(config)
    return run


def _without_place(arguments: dict[str, Any]) -> dict[str, Any]:
    from runvitals.sdk import sweep_parameters  # few runs are started by the agent of a sweep

    return sweep_parameters.without_place(arguments)


def _configure(run: Run, config: Mapping[str, Any] | None) -> None:
    if config is not None:
        run.config.update(config)
    if _IN_SWEEP in os.environ:
        from runvitals.sdk import sweep_parameters

        sweep_parameters.apply(run.id, run.config)


def _finishes_open_run(others: Mapping[str, Any], reinit: bool | str | None) -> bool:
    """Check the arguments that W&B's scripts have; return whether the open run is finished.

    Raises:
        TypeError, ValueError: one that is not supported.
    """
    from runvitals.monitoring.settings import wandb_arguments  # few scripts use W&B's arguments

    wandb_arguments.of_init(others)
    return wandb_arguments.reinit(reinit)


def _spelling(value: Any) -> Any:
    """Return a mode or `resume`; W&B's values are replaced by ours."""
    if value is None or value in MODES or value in RESUMES:
        return value
    from runvitals.monitoring.settings import wandb_arguments

    ours: dict[Any, Any] = {**wandb_arguments.MODES, **wandb_arguments.RESUMES}
    return ours.get(value, value)


def resolve_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every setting. What nothing sets comes from W&B's environment variables.

    Raises:
        SettingError: an unknown setting, an invalid value, or an unknown kind of destination.
    """
    traced = trace(arguments, os.environ, working_folder())
    values = {name: value for name, (value, _) in traced.items()}
    if any(name.startswith("WANDB_") for name in os.environ):
        from runvitals.sdk import wandb_environment

        values.update(wandb_environment.read(traced, os.environ))
    check_kinds(values, traced["destinations"][1])
    if values["collectors"] != SETTINGS["collectors"].default:
        from runvitals.sdk.source_names import check_collectors

        check_collectors(values, traced["collectors"][1])
    return values


def _choose_entries(
    config: Any, without: Collection[str] | None, only: Collection[str] | None
) -> Mapping[str, Any] | None:
    """Return the entries of `config` to record; None without a `config`."""
    if config is None:
        return None
    if isinstance(config, (str, os.PathLike)):
        from runvitals.sdk.config_file import read_config  # few scripts have such a file

        config = read_config(config)
    entries = config if isinstance(config, Mapping) else pairs(config)
    if without is None and only is None:
        return entries
    from runvitals.monitoring.settings import wandb_arguments

    chosen: Mapping[str, Any] = wandb_arguments.select_entries(entries, without, only)
    return chosen


def current_run() -> Run | None:
    """Return the open run of this process, or None."""
    return None if _active is None or _active.finished else _active


def active() -> Run:
    """Return the open run of this process.

    Raises:
        RuntimeError: no run is open.
    """
    if _active is None:
        raise NotOpen("no run is open in this process: call runvitals.init() first")
    return _active


def _open_here() -> Run | None:
    """Return the open run that this process has opened. A forked child has a copy of its parent's."""
    run = current_run()
    return run if run is not None and run.opened_by == os.getpid() else None


def _as_arguments(settings: Settings | Mapping[str, Any] | None) -> dict[str, Any]:
    if settings is None:
        return {}
    if isinstance(settings, Settings):
        return dict(settings.given)
    if isinstance(settings, Mapping):
        return Settings(**settings).given
    raise SettingError(f"init(): settings must be a runvitals.Settings or a mapping, not {settings!r}")


def _run_without_record(values: Mapping[str, Any]) -> Run:
    return Run(values, values["run_id"] or "disabled", {}, None)


def _start_recording(values: dict[str, Any]) -> Run:
    """Start recording. If no folder can be written, the training continues without a record."""
    try:
        if spawned_worker.imports_main():
            return _run_of_parent(values)
        return _begin(values)
    except OSError as error:
        notify(f"this training is not recorded: {error}")
        return _run_without_record(values)


def _begin(resolved_values: Mapping[str, Any]) -> Run:
    values = _shorten_texts(resolved_values)
    identity = identify(values, os.environ)
    directory = usable_directory(values["dir"], identity.run_id, values["resume"])
    folder = paths.run_dir(identity.run_id, directory)
    before = ResumeState.read(folder) if os.path.isdir(folder) and not identity.shared else None
    about = {} if before is not None else identity.about(values, directory)
    if before is None and _in_notebook():
        about["notebook"] = True
    attachment = Attachment(values, identity, directory, about)
    name = values["name"] or (before.name if before is not None else about.get("default_name"))
    run = Run({**values, "name": name}, identity.run_id, identity.ranks, attachment)
    if before is not None:
        run.resume_at(before.next_step)
    spawned_worker.remember(run.id, directory)
    _hook()
    if not values["quiet"] and not run.rank:
        _announce(run)
    return run


def _run_of_parent(values: dict[str, Any]) -> Run:
    """Return the run of the process that has started this worker, which imports its script."""
    parent = spawned_worker.of_parent()
    if parent is None:
        notify(
            "this worker is not recorded: it calls runvitals.init() while it imports the script; call it "
            'under `if __name__ == "__main__":`, or in the function that the worker runs'
        )
        return _run_without_record(values)
    identity = RunIdentity(parent.run_id, True, {}, {})
    return Run(
        values, parent.run_id, {}, Attachment(values, identity, parent.directory, {}, opened_by=parent.pid)
    )


def _announce(run: Run) -> None:
    """Print where the run is recorded.

    `runvitals run` has printed it for its command, but not the name and project that the command's script
    gives the run.
    """
    if os.environ.get(ANNOUNCED) != run.id:
        notify(f"run {run.id} ({run.name}) of project {run.project}, recorded in {run.dir}")
    elif run.project != os.environ.get(SETTINGS["project"].variable):
        notify(f"run {run.id} ({run.name}) is of project {run.project} from now on")


def _shorten_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, with texts shortened to what a record can hold."""
    sanitizer = Sanitizer()
    bounded = {key: sanitizer.value(values[key]) for key in ("notes", "labels")}
    bounded["tags"] = distinct_tags(values["tags"], sanitizer.fault)
    for key in ("project", "name", "group", "job_type"):
        bounded[key] = sanitizer.value(values[key])
    for fault in sanitizer.faults:
        notify(f"the run's description has {fault}: recorded as far as possible")
    return {**values, **bounded}


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ != "TerminalInteractiveShell"


def _hook() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    for run in _all_runs():
        run._at_exit()


def _after_fork() -> None:
    global _lock
    _lock = RLock()  # a thread that does not exist here may hold it
    for run in _all_runs():
        run._after_fork()


def _all_runs() -> list[Run]:
    return [*([] if _active is None else [_active]), *_beside]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
