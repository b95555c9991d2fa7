"""A training that logs with wandb 0.16: run as a program, by the test beside it."""

from __future__ import annotations


def main() -> None:
    import wandb

    run = wandb.init(project="digits", id="old", name="first", tags=["a"], config={"lr": 0.1})
    run.define_metric("epoch")
    run.define_metric("val/*", step_metric="epoch", summary="min")
    for epoch in range(5):
        run.log({"epoch": epoch, "val/loss": 1.0 + epoch})
    run.log({"histogram": wandb.Histogram([1, 2, 3])})
    run.alert("Careful", "the loss rises")
    run.finish()
    run = wandb.init(project="digits", id="old", resume="must")
    run.log({"epoch": 9})
    run.finish()


if __name__ == "__main__":
    main()
