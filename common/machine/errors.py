"""Errors that stop the platform from starting, each with one sentence for the user.

StartError
├── BinariesError       no usable PostgreSQL
├── ClusterError        a cluster cannot be prepared, started or reached
├── AlreadyRunningError another process holds the data folder
├── PortTakenError      another program listens where the platform would
└── SupervisorError     a supervised process does not stay up
"""


class StartError(Exception):
    """Ends the command with exit status 1; its text is printed to the user unchanged."""


class BinariesError(StartError):
    """No usable PostgreSQL binaries."""


class ClusterError(StartError):
    """A cluster cannot be prepared, started or reached."""


class AlreadyRunningError(StartError):
    """Another process holds the lock of a data folder."""


class PortTakenError(StartError):
    """Another program listens on a port the platform needs."""


class SupervisorError(StartError):
    """A supervised process does not come up, or does not stay up."""
