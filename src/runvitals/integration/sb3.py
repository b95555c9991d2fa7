"""The callback for Stable-Baselines3, with the name of `wandb.integration.sb3`."""

from runvitals.sdk.integrations.stable_baselines import StableBaselinesCallback as WandbCallback

__all__ = ["WandbCallback"]
