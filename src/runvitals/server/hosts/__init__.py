"""The machines that runs ran on."""
