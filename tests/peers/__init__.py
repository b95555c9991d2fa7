"""Runs the tests of other systems' clients against this server: `scripts/peers wandb|promql CHECKOUT`.

Nothing of their code is here, and nothing of their tests is changed: only what starts a server is replaced.
What fails is compared with a list of known gaps, each with its reason.
"""
