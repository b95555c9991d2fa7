"""NVIDIA GPUs as reported by the DCGM exporter, read directly or through a Prometheus server."""
