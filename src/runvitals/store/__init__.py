"""Keeps what runs sent: values (`samples`) and contents of files (`files`)."""
