"""The tables of what only wandb's clients have."""
