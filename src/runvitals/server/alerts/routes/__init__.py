"""The routes of alerts: settings of users and teams, rules, automations, destinations, links that mute.

Each resource is a module with a `router`, listed in `routers`.
"""
