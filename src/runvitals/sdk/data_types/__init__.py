"""Names of `wandb.sdk.data_types`."""
