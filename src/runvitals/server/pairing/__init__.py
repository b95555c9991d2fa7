"""Keeps samples and metadata in step: pairs them, checks and repairs both."""
