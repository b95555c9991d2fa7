"""Sweeps in scripts and on the command line: make one, and start its runs.

Uses only the standard library, and PyYAML for configurations in YAML.
"""
