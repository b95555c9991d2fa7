"""Reads and changes a server with `wandb.Api()` of the installed client, and prints one JSON object.

python api_client.py ENTITY/PROJECT
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wandb


def error(work: Callable[[], object]) -> str:
    """The text of the error that something raises."""
    try:
        work()
    except Exception as raised:  # noqa: BLE001 - the test compares its text
        return f"{type(raised).__name__}: {raised}"
    return "no error"


def main(path: str) -> dict[str, Any]:
    entity, project = path.split("/")
    api = wandb.Api(timeout=600)
    results: dict[str, Any] = {}
    results["viewer"] = [api.viewer.username, api.viewer.entity, api.viewer.teams]
    results["projects"] = sorted(each.name for each in api.projects(entity))
    results["project"] = [api.project(project, entity).name, api.project(project, entity).id]
    results["users"] = [each.username for each in api.users("ad")]
    results["members"] = [[each.username, each.admin] for each in api.team(entity).members]

    runs = api.runs(path, per_page=2)
    results["count"] = len(runs)
    results["runs"] = [[run.id, run.name, run.state, run.tags, run.created_at, run.notes] for run in runs]
    results["configs"] = [run.config for run in runs]
    filters = {"$or": [{"config.lr": {"$gte": 0.2}}, {"tags": {"$in": ["old"]}}]}
    results["filtered"] = [run.id for run in api.runs(path, filters=filters, order="-config.lr", per_page=1)]
    results["eager"] = [dict(run.summary)["loss"] for run in api.runs(path, lazy=False)]
    results["bad filter"] = error(lambda: len(api.runs(path, filters={"$where": "1"})))
    results["no project"] = error(lambda: len(api.runs(f"{entity}/nothing")))
    results["no run"] = error(lambda: api.run(f"{path}/nothing"))

    run = api.run(f"{path}/run1")
    results["run"] = [run.id, run.state, run.user.username, run.commit, run.read_only, run.lastHistoryStep]
    results["system"] = run.system_metrics
    results["sampled"] = run.history(samples=5, pandas=False)
    results["keys"] = run.history(samples=4, keys=["loss", "acc"], pandas=False)
    results["events"] = run.history(stream="events", pandas=False)
    results["scan"] = list(run.scan_history(page_size=50))
    results["scan of keys"] = list(run.scan_history(keys=["acc"], page_size=1000))
    results["scan of steps"] = [row["_step"] for row in run.scan_history(min_step=3, max_step=7)]
    results["scan again"] = [
        list(run.scan_history(keys=keys, use_cache=cached)) == list(run.scan_history(keys=keys))
        for keys in (None, ["acc"])
        for cached in (True, False)
    ]
    results["no exports"] = error(lambda: run.download_history_exports("exports"))
    exports = run.download_history_exports("exports", require_complete_history=False)
    results["exports"] = [exports.paths, exports.contains_live_data, exports.errors]
    results["output"] = [[line.number, line.content, line.level] for line in run.console_logs()]

    files = run.files(per_page=2)
    results["files"] = [[file.name, file.size, file.mimetype] for file in files]
    results["some files"] = [file.name for file in run.files(pattern="logs/%.t_t")]
    with run.file("logs/été #1.txt").download(root="downloads") as file:
        results["downloaded"] = file.read()
    other = api.run(f"{path}/run3")
    file = other.file("./a model.pt")
    file.delete()
    results["deleted file"] = [error(file.delete), [left.name for left in other.files()]]

    run.config["extra"] = {"a": [1, 2]}
    run.tags = ["new", "base"]
    run.notes, run.name, run.summary["best"] = "changed", "renamed", 0.5
    run.update()
    again = wandb.Api(timeout=600).run(f"{path}/run1")
    results["updated"] = [again.config, again.tags, again.notes, again.name, again.summary["best"]]
    api.run(f"{path}/run2").stop()
    api.run(f"{path}/run3").delete()
    api.create_project("fresh", entity)
    later = wandb.Api(timeout=600)
    results["left"] = [each.id for each in later.runs(path)]
    results["created"] = later.project("fresh", entity).created_at

    def state(name: str) -> str:
        return str(wandb.Api(timeout=600).run(f"{path}/{name}").state)

    results["reports"] = [list(later.reports(path)), list(later.reports(path, name="weekly"))]
    results["no reports"] = error(lambda: list(later.reports(f"{entity}/nothing")))
    results["failed"] = [later.run(f"{path}/run2").update_state("failed"), state("run2")]
    results["pending"] = error(lambda: later.run(f"{path}/run1").update_state("pending"))
    results["failed twice"] = error(lambda: later.run(f"{path}/run2").update_state("failed"))
    results["sweep"] = error(lambda: api.sweep(f"{path}/abc"))
    sweep = {"method": "random", "parameters": {"lr": {"min": 0, "max": 1}}}
    name = wandb.sweep(sweep, project=project, entity=entity)
    results["sweeps"] = [each.name == name for each in later.project(project, entity).sweeps()]
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        wandb.setup(wandb.Settings(root_dir=folder, silent=True))
        result = json.dumps(main(sys.argv[1]))
    Path(sys.argv[2]).write_text(result)
