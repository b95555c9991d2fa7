"""Logs what is not a number with the installed client, and prints what `wandb.Api()` reads.

python history_client.py PROJECT
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import wandb


def main(project: str) -> dict[str, Any]:
    settings = wandb.Settings(x_file_stream_transmit_interval=0.2, x_disable_stats=True, silent=True)
    run = wandb.init(project=project, id="others", settings=settings)
    run.log({"loss": float("nan"), "text": "first", "none": None, "flag": True, "big": 2**60})
    run.log({"loss": float("inf"), "list": [1, "x", {"k": 2}], "net": {"a": 1, "s": "nested"}})
    run.log({"text": "=1+1"})
    run.log({"loss": 1.5, "text": 2.0})
    pixels = np.zeros((4, 4, 3), np.uint8)
    run.log({"image": wandb.Image(pixels), "table": wandb.Table(columns=["a"], data=[[1]])})
    run.log({"text": "last"})
    run.finish()
    read = wandb.Api().run(f"{project}/others")
    own = ("_runtime", "_timestamp")

    def rows(listed: Any) -> Any:
        return [{name: value for name, value in row.items() if name not in own} for row in listed]

    return {
        "scan": rows(read.scan_history()),
        "history": rows(read.history(pandas=False)),
        "keys": rows(read.history(keys=["text"], pandas=False)),
        "frame": [str(value) for value in read.history()["text"]],
        "last": read.lastHistoryStep,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
