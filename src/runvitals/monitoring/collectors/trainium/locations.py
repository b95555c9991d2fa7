"""The folder where the Neuron programs are installed: apart, so that the probe loads nothing else."""

from __future__ import annotations

BIN = "/opt/aws/neuron/bin/"
