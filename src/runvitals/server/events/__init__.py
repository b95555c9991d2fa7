"""Events, written in the transaction in which they happened, for alerts, automations and usage."""
