"""Teams: their members, invitations, and service accounts."""
