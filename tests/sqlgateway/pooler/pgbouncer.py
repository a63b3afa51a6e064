"""A real PgBouncer on loopback over the tenants' cluster, with the configuration of the docs."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

from tests.ports import free_port
from tests.waiting import wait_until

DOCUMENT: Final = Path(settings.BASE_DIR) / "docs" / "scaling.md"
HEADING: Final = "## Behind PgBouncer"


def program() -> str | None:
    """Return its path; Debian's is for the superuser's PATH."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class PgBouncer:
    """The pooler. url: of the tenants' cluster through it, as the cluster's administrator."""

    def __init__(self, server: str = "", *, pool_mode: str = "session") -> None:
        """server: the URL of another cluster than the configured one."""
        self._server = conninfo_to_dict(server or settings.SQL.cluster_url)
        self._port = free_port()
        user, password = str(self._server["user"]), quote(str(self._server["password"]), safe="")
        self.url = f"postgresql://{user}:{password}@127.0.0.1:{self._port}/postgres"
        # Not in pytest's own folder, which only its user may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="zonal-pgbouncer-"))
        self._write(pool_mode)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        owner = self._owner()
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(program()), str(self._folder / "pgbouncer.ini")],
                stdout=log,
                stderr=log,
                **({"user": owner, "group": pwd.getpwuid(owner).pw_gid} if owner else {}),  # type: ignore[call-overload]  # options by name
                **({"extra_groups": []} if owner else {}),
            )
        wait_until(self._answers)

    def kill(self) -> None:
        """End it at once, with all connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(30)

    def command(self, text: str) -> None:
        """Run a command of its console."""
        console = self.url.removesuffix("postgres") + "pgbouncer"
        with psycopg.connect(console, autocommit=True) as connection:
            connection.execute(text.encode())

    def remove(self) -> None:
        """End it and delete its files."""
        self.kill()
        shutil.rmtree(self._folder)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        with suppress(psycopg.OperationalError):
            psycopg.connect(self.url, connect_timeout=2).close()
            return True
        return False

    def _owner(self) -> int:
        """Return who may enter the server's socket folder; 0 if that is who runs the tests.

        PgBouncer refuses to run as root.
        """
        if os.geteuid() != 0:
            return 0
        folder = str(self._server.get("host", ""))
        is_socket = folder.startswith("/")
        return Path(folder).stat().st_uid if is_socket else pwd.getpwnam("nobody").pw_uid

    def _write(self, pool_mode: str) -> None:
        ini = documented()
        server = {key: self._server[key] for key in ("host", "port") if key in self._server}
        ini["databases"]["*"] = " ".join(f"{key}={value}" for key, value in server.items())
        users = self._folder / "userlist.txt"
        ini["pgbouncer"] |= {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self._port),
            "unix_socket_dir": "",
            "auth_file": str(users),
            "auth_user": str(self._server["user"]),
            "admin_users": str(self._server["user"]),
            "pool_mode": pool_mode,
        }
        users.write_text(f'"{self._server["user"]}" "{self._server["password"]}"\n')
        path = self._folder / "pgbouncer.ini"
        with path.open("w") as file:
            parser = ConfigParser(interpolation=None)
            parser.read_dict(ini)
            parser.write(file)
        if owner := self._owner():
            for each in (self._folder, users, path):
                os.chown(each, owner, -1)


def documented() -> dict[str, dict[str, str]]:
    """Return the pgbouncer.ini that the documentation recommends."""
    text = DOCUMENT.read_text().partition(HEADING)[2]
    parser = ConfigParser(interpolation=None)
    parser.read_string(text.partition("```ini\n")[2].partition("```")[0])
    return {name: dict(parser[name]) for name in parser.sections()}
