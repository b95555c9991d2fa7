"""Logs an artifact, an image and a file with an unmodified wandb client, and downloads the artifact again.

The artifact has references to what is below a prefix: the second argument.
"""

from __future__ import annotations

import sys
from pathlib import Path

import wandb

with wandb.init(entity="labs", project="wandb", id="maker") as run:
    artifact = wandb.Artifact("weights", type="model")
    with artifact.new_file("model.txt", mode="w") as file:
        file.write("logged by wandb" * 1000)
    artifact.add_reference(sys.argv[2], name="raw")
    run.log_artifact(artifact).wait()
    run.log({"page": wandb.Html("<p>logged by wandb</p>")})
    Path("saved.txt").write_text("saved by wandb")
    run.save("saved.txt")

with wandb.init(entity="labs", project="wandb", id="user") as run:
    folder = run.use_artifact("weights:latest").download(sys.argv[1])
    assert Path(folder, "model.txt").read_text() == "logged by wandb" * 1000
    assert Path(folder, "raw", "sub", "b.txt").read_text() == "bb"
