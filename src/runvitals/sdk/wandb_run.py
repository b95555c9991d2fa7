"""Names that W&B's run has and ours does not. A `__getattr__` would make every access to a run slower."""

from __future__ import annotations

from typing import Any

ABSENT = (
    "display", "finish_artifact", "join", "logged_artifacts", "mark_preempting", "plot_table",
    "restore", "settings", "start_time", "status", "to_html",
    "upsert_artifact", "used_artifacts", "write_logs",
)  # fmt: skip
"""Their errors say what to use instead: `wandb_names.ABSENT`."""


class WandbRunName:
    """An attribute that is computed, or missing, by its name in W&B's run."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, run: Any, owner: type) -> Any:
        if run is None:
            return self
        from runvitals.sdk import wandb_names

        return wandb_names.of_run(self._name, run.id, run.project, run.entity, lambda: run.url)


class WandbRun:
    """The base of `Run` with these names."""

    path: Any = WandbRunName("path")
    get_url: Any = WandbRunName("get_url")
    project_name: Any = WandbRunName("project_name")
    sweep_id: Any = WandbRunName("sweep_id")
    sweep_url: Any = WandbRunName("sweep_url")
    get_sweep_url: Any = WandbRunName("get_sweep_url")
    project_url: Any = WandbRunName("project_url")
    get_project_url: Any = WandbRunName("get_project_url")


for _name in ABSENT:
    setattr(WandbRun, _name, WandbRunName(_name))
