"""What a developer runs: the shell scripts of this folder, and the builder of the documentation."""
