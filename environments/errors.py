"""What the environments refuse."""

from platform_site.lib.errors import Conflict, NotFound


class EnvironmentNotFound(NotFound):
    """No environment of the caller's organization has this id or name."""

    code = "environment_not_found"
    title = "There is no such environment."


class EnvironmentTaken(Conflict):
    """The id or name is the id or name of another environment of the organization."""

    code = "environment_taken"
    title = "Another environment has this id or name."


class EnvironmentBuiltIn(Conflict):
    """``live`` and ``sandbox`` cannot be deleted."""

    code = "environment_built_in"
    title = "This environment is built in and cannot be deleted."
