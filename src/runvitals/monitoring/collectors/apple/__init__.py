"""Macs with Apple silicon: macmon, as a library or as a program, and the system's own ioreg."""
