"""Collectors read the machine: one module per source of metrics, one folder per vendor or system."""
