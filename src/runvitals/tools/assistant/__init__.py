"""What assistants (language models) read and change of runs, as a server of the Model Context Protocol."""
