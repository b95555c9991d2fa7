"""A training that logs with the real wandb: run as a program, by the tests beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from glob import glob
from typing import Any


def begin(**how: Any) -> Any:
    """A run whose lines are sent at once."""
    import wandb

    options = {"x_stats_sampling_interval": 1.0, "x_file_stream_transmit_interval": 0.5}
    return wandb.init(project="digits", settings=wandb.Settings(**options), **how)


def until_killed() -> None:
    run = begin(id="killed", resume="allow")
    for _ in range(5):
        run.log({"loss": float(run.step)})
    print("logged", flush=True)
    signal.pause()


def everything() -> None:
    import numpy as np
    import wandb

    config = {"lr": 0.1, "net": {"layers": [1, 2]}}
    about = {"name": "first", "tags": ["a"], "notes": "n", "group": "g", "job_type": "train"}
    run = begin(id="all", config=config, **about)
    run.define_metric("epoch")
    run.define_metric("val/*", step_metric="epoch", summary="min")
    run.define_metric("kept", summary="last")
    run.define_metric("bad", summary="none")
    for step in range(5):
        run.log({"epoch": step, "val/loss": 1.0 + step, "net": {"a": step}, "bad": float("nan")})
    pixels = np.zeros((8, 8, 3), np.uint8)
    run.log(
        {
            "image": wandb.Image(pixels, caption="black"),
            "images": [wandb.Image(pixels), wandb.Image(pixels + 255)],
            "table": wandb.Table(columns=["n", "text"], data=[[1, "x"], [2.5, "y"]]),
            "histogram": wandb.Histogram([1, 2, 3]),
            "page": wandb.Html("<b>x</b>"),
        }
    )
    print("said")
    with open("saved.txt", "w", encoding="utf-8") as file:
        file.write("kept")
    run.save("saved.txt")
    run.alert("Careful", "the loss rises", level="WARN")
    run.summary["best"] = 0.5
    run.finish()

    run = begin(id="killed", resume="must")
    run.log({"loss": float(run.step)})
    run.finish(exit_code=3)
    for id, resume in (("killed", "never"), ("missing", "must")):
        try:
            begin(id=id, resume=resume)
        except wandb.errors.UsageError as error:
            print(error)
    offline = begin(id="offline", mode="offline")
    for step in range(100):
        offline.log({"loss": step})
    offline.finish()
    sync(*glob("wandb/offline-run-*"))


def sync(*folders: str) -> None:
    command = [sys.executable, "-m", "wandb", "sync", "--include-synced", *folders]
    subprocess.run(command, check=True)


def slices() -> None:
    """Three sessions of a preempted job, of which the first failed, synced in two orders, and all again. The
    second goes on from a checkpoint that is ten steps old."""
    for run in ("forward", "backward"):
        for session, steps in enumerate((range(50), range(40, 80), range(80, 100)), 1):
            os.environ["WANDB_DIR"] = f"{run}-{session}"
            os.mkdir(f"{run}-{session}")
            with begin(id=run, resume="allow", mode="offline") as recorded:
                for step in steps:
                    recorded.log({"loss": 100 * session + step}, step=step)
                recorded.finish(exit_code=1 if session == 1 else 0)
    for run, order in (("forward", (1, 2, 3)), ("backward", (3, 2, 1))):
        for _ in range(2):
            for session in order:
                sync(*glob(f"{run}-{session}/wandb/offline-run-*"))


if __name__ == "__main__":
    os.environ["WANDB_SILENT"] = "true"
    {"until_killed": until_killed, "everything": everything, "slices": slices}[sys.argv[1]]()
