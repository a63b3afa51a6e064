"""A server process in a recipe."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """A server process, started after the databases and stopped before them.

    ready_path: a path on `port` that answers 200 once the server is ready. port_setting: the
    setting of the port, which is checked before anything starts; "" for a port found free.
    joins: started together with the server before it, for small servers.
    """

    name: str
    command: tuple[str, ...]
    port: int | None = None
    port_setting: str = ""
    ready_path: str = ""
    needs: tuple[str, ...] = ()
    stop_timeout_s: float = 15.0
    joins: bool = False
