"""A process of the platform, as a recipe lists it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Server:
    """Started after the databases and stopped before them.

    ready_path: a path that answers 200 on `port` once it serves. port_setting: what the user
    sets to choose another port, looked at before anything starts; "" for a port found free.
    joins: started together with the one before it, not after it: for small ones.
    """

    name: str
    command: tuple[str, ...]
    port: int | None = None
    port_setting: str = ""
    ready_path: str = ""
    needs: tuple[str, ...] = ()
    stop_patience_s: float = 15.0
    joins: bool = False
