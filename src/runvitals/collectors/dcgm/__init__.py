"""NVIDIA GPUs as the DCGM exporter tells of them, directly or through a Prometheus that has asked it."""
