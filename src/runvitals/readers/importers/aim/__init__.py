"""Imports the repositories of Aim."""
