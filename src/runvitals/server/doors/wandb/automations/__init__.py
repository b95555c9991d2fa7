"""Automations and integrations of teams, as wandb's clients create and list them."""
