"""Names that W&B's run has and ours does not. A `__getattr__` would make every access to a run slower."""

from __future__ import annotations

from typing import Any

from runvitals.monitoring.settings.messages import notify

ABSENT = (
    "config_static", "starting_step", "sync_dir",
    "finish_artifact", "logged_artifacts", "settings", "start_time", "status", "upsert_artifact",
    "used_artifacts", "write_logs",
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

    def display(self, height: int = 420, hidden: bool = False) -> bool:
        """Print where the run is: its page, or its folder without a server. Returns whether it has a page."""
        run: Any = self
        notify(f"run {run.id}: {run.url or run.dir}")
        return run.url is not None

    def to_html(self, height: int = 420, hidden: bool = False) -> str:
        """Return the run as notebooks show it; its id if it is not recorded."""
        run: Any = self
        return run._repr_html_() or str(run.id)

    def join(self, exit_code: int | None = None) -> None:
        """Finish the run; an old name of `finish`."""
        run: Any = self
        run.finish(exit_code)

    def mark_preempting(self) -> None:
        """Do nothing: the state of a run whose process was ended is known from its signal."""

    def pin_config_keys(self, keys: Any = None) -> None:
        """Do nothing: the columns of a list of runs are chosen on the page."""

    def plot_table(self, *arguments: Any, **others: Any) -> Any:
        """Return the chart of one of W&B's specifications; see `runvitals.plot_table`."""
        from runvitals.sdk.media.charts import plot_table

        return plot_table(*arguments, **others)

    def restore(
        self, name: str, run_path: str | None = None, replace: bool = False, root: str | None = None
    ) -> Any:
        """Copy a file that a run saved into a folder; see `runvitals.restore`."""
        from importlib import import_module

        return import_module("runvitals").restore(name, run_path, replace, root)  # it may read a server


for _name in ABSENT:
    setattr(WandbRun, _name, WandbRunName(_name))
