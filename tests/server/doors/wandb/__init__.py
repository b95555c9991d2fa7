"""The door for wandb clients."""
