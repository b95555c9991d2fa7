"""Labelled runs: sick ones, each with what is wrong with it, and healthy ones that look suspicious."""
