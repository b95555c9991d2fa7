"""What happened, written in the transaction in which it happened, for alerts, automations and usage."""
