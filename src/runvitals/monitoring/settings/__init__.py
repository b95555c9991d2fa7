"""All settings: their validation, the files that set them, and which of several values applies."""
