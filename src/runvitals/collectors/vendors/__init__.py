"""Accelerators that a vendor's command or the kernel's files tell about: one small file for each vendor."""
