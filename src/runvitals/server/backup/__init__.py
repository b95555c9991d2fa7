"""Backups of whole servers: samples, metadata and files in a folder or a tar file."""
