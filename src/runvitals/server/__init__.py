"""The server: the API over journals (`runvitals ui`) or over stores (`runvitals server`), and the page."""
