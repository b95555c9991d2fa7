"""Projects: whose they are, who sees them, and their saved views."""
