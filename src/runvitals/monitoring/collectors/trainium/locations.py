"""The folders where the Neuron programs are installed."""

from __future__ import annotations

BIN = "/opt/aws/neuron/bin/"
