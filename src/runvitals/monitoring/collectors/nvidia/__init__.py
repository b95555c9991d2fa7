"""NVIDIA GPUs, read through the driver's library, NVML."""
