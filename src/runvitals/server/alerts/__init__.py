"""Alert rules, automations, notifications, and the channels that deliver them."""
