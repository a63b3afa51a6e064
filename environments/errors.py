"""The errors of environments."""

from common.errors import Conflict, Forbidden, NotFound


class EnvironmentNotFound(NotFound):
    """No environment of the caller's organization has this id or name."""

    code = "environment_not_found"
    title = "There is no such environment."


class EnvironmentTaken(Conflict):
    """The id or name is the id or name of another environment of the organization."""

    code = "environment_taken"
    title = "Another environment has this id or name."


class QuotaExceeded(Forbidden):
    """The limit of the organization's environments, or of an environment's data, is reached.

    In SQL, DELETE, TRUNCATE, DROP and reading still work.
    """

    code = "quota_exceeded"
    title = "A quota is used up."


class EnvironmentNotReady(Conflict):
    """The environment to clone is itself an unfinished or failed clone."""

    code = "environment_not_ready"
    title = "The environment to copy from is not complete."


class EnvironmentBuiltIn(Conflict):
    """``live`` and ``sandbox`` cannot be deleted."""

    code = "environment_built_in"
    title = "This environment is built in and cannot be deleted."
