"""Runs beside a training: collectors, facts about the machine, the monitor. Standard library only."""
