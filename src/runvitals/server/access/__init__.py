"""Who makes a request, and whether it is allowed.

`decide` answers every question about rights from one table (`matrix`). The server passes a principal
(who makes the request), an action and a resource:

    >>> from runvitals.server.access.actions import Action
    >>> from runvitals.server.access.decisions.decision import Decision, decide
    >>> from runvitals.server.access.principals import Anonymous
    >>> from runvitals.server.access.resources import Entity, Project
    >>> decide(Anonymous(), Action.PROJECT_READ, Project(1, Entity(7)))
    <Decision.HIDDEN: 'hidden'>
"""
