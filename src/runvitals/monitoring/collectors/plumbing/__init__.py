"""The modules that collectors share: child processes, HTTP, parsers of output, numbers with units."""
