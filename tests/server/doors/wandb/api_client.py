"""What `wandb.Api()` of the installed client reads from a server and changes there, as one JSON object.

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
    api = wandb.Api(timeout=60)
    found: dict[str, Any] = {}
    found["viewer"] = [api.viewer.username, api.viewer.entity, api.viewer.teams]
    found["projects"] = sorted(one.name for one in api.projects(entity))
    found["project"] = [api.project(project, entity).name, api.project(project, entity).id]
    found["users"] = [one.username for one in api.users("ad")]
    found["members"] = [[one.username, one.admin] for one in api.team(entity).members]

    runs = api.runs(path, per_page=2)
    found["count"] = len(runs)
    found["runs"] = [[run.id, run.name, run.state, run.tags, run.created_at, run.notes] for run in runs]
    found["configs"] = [run.config for run in runs]
    wanted = {"$or": [{"config.lr": {"$gte": 0.2}}, {"tags": {"$in": ["old"]}}]}
    found["filtered"] = [run.id for run in api.runs(path, filters=wanted, order="-config.lr", per_page=1)]
    found["eager"] = [dict(run.summary)["loss"] for run in api.runs(path, lazy=False)]
    found["bad filter"] = error(lambda: len(api.runs(path, filters={"$where": "1"})))
    found["no project"] = error(lambda: len(api.runs(f"{entity}/nothing")))
    found["no run"] = error(lambda: api.run(f"{path}/nothing"))

    run = api.run(f"{path}/run1")
    found["run"] = [run.id, run.state, run.user.username, run.commit, run.read_only, run.lastHistoryStep]
    found["system"] = run.system_metrics
    found["sampled"] = run.history(samples=5, pandas=False)
    found["keys"] = run.history(samples=4, keys=["loss", "acc"], pandas=False)
    found["events"] = run.history(stream="events", pandas=False)
    found["scan"] = list(run.scan_history(page_size=50))
    found["scan of keys"] = list(run.scan_history(keys=["acc"], page_size=1000))
    found["scan of steps"] = [row["_step"] for row in run.scan_history(min_step=3, max_step=7)]
    found["scan again"] = [
        list(run.scan_history(keys=keys, use_cache=cached)) == list(run.scan_history(keys=keys))
        for keys in (None, ["acc"])
        for cached in (True, False)
    ]
    found["no exports"] = error(lambda: run.download_history_exports("exports"))
    exports = run.download_history_exports("exports", require_complete_history=False)
    found["exports"] = [exports.paths, exports.contains_live_data, exports.errors]
    found["output"] = [[line.number, line.content, line.level] for line in run.console_logs()]

    files = run.files(per_page=2)
    found["files"] = [[file.name, file.size, file.mimetype] for file in files]
    found["some files"] = [file.name for file in run.files(pattern="logs/%.t_t")]
    with run.file("logs/été #1.txt").download(root="downloads") as file:
        found["downloaded"] = file.read()
    found["deleted file"] = error(lambda: run.file("a model.pt").delete())

    run.config["extra"] = {"a": [1, 2]}
    run.tags = ["new", "base"]
    run.notes, run.name, run.summary["best"] = "changed", "renamed", 0.5
    run.update()
    again = wandb.Api(timeout=60).run(f"{path}/run1")
    found["updated"] = [again.config, again.tags, again.notes, again.name, again.summary["best"]]
    api.run(f"{path}/run2").stop()
    api.run(f"{path}/run3").delete()
    api.create_project("fresh", entity)
    later = wandb.Api(timeout=60)
    found["left"] = [one.id for one in later.runs(path)]
    found["created"] = later.project("fresh", entity).created_at

    def state(name: str) -> str:
        return str(wandb.Api(timeout=60).run(f"{path}/{name}").state)

    found["reports"] = [list(later.reports(path)), list(later.reports(path, name="weekly"))]
    found["no reports"] = error(lambda: list(later.reports(f"{entity}/nothing")))
    found["failed"] = [later.run(f"{path}/run2").update_state("failed"), state("run2")]
    found["pending"] = error(lambda: later.run(f"{path}/run1").update_state("pending"))
    found["failed twice"] = error(lambda: later.run(f"{path}/run2").update_state("failed"))
    found["sweep"] = error(lambda: api.sweep(f"{path}/abc"))
    sweep = {"method": "random", "parameters": {"lr": {"min": 0, "max": 1}}}
    name = wandb.sweep(sweep, project=project, entity=entity)
    found["sweeps"] = [one.name == name for one in later.project(project, entity).sweeps()]
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        wandb.setup(wandb.Settings(root_dir=folder, silent=True))
        result = json.dumps(main(sys.argv[1]))
    Path(sys.argv[2]).write_text(result)
