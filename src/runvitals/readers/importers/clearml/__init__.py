"""Imports offline sessions of ClearML."""
