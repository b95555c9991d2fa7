"""Collectors of accelerators from a vendor's command or the kernel's files: one small module per vendor."""
