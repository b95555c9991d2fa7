"""NVIDIA GPUs, asked through the driver's own library, NVML."""
