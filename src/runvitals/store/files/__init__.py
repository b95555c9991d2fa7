"""Contents of files by their SHA-256: media and saved files of runs."""
