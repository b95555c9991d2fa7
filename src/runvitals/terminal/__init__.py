"""Screens in a terminal: the workspace of runs (`leet`), and this machine (`top`)."""
