"""Released clients of wandb, each in an environment of its own, against our server."""
