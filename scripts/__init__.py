"""Programs for developers: the shell scripts of this folder, and the builder of the documentation."""
