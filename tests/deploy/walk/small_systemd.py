"""Process 1 of a machine of its own for a test: private folders, and the units of systemd.

``unshare … python3 small_systemd.py FOLDER`` mounts copies or empty folders over what an operator
changes, then starts, reloads and stops units for the ``systemctl`` that it puts on PATH: their Exec
lines with their environment, user, folders and read-only system. It knows what the units of deploy/
and Debian's caddy.service use; systemd's own check of the units is in test_units.py.
"""

import fcntl
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

UNIT_FOLDERS: Final = (Path("/etc/systemd/system"), Path("/lib/systemd/system"))
CONTROL: Final = "/run/small-systemd.sock"
LOGS: Final = Path("/run/log")
START_S: Final = 120.0
# Folders that are empty at first, and those that keep what is in them but for some names.
EMPTY: Final = ("/srv", "/mnt", "/run", "/root", "/home", "/dev/shm")  # noqa: S108 - mounted over
PRIVATE: Final = {
    "/opt": ("releases", "zonal"),
    "/var/lib": ("zonal", "zonal-local", "postgresql", "caddy"),
    "/var/log": ("postgresql",),
    "/usr/local/sbin": ("zonal-manage",),
}
SYSTEMCTL: Final = """#!/usr/bin/python3
import json, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect("/run/small-systemd.sock")
    asked.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    said = json.loads(asked.makefile().readline())
sys.exit(said or 0)
"""
HOSTS: Final = "127.0.0.1 localhost app.example.com objects.example.com mail.example.com\n"


class UnitFailed(Exception):
    """A unit that is unknown, or did not start, reload or stop."""


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def make_private(folder: Path) -> None:
    """Mount what the test may change over the folders of the machine."""
    subprocess.run(["cp", "-a", "/etc", str(folder)], check=True)
    for name in ("postgresql", "zonal"):
        shutil.rmtree(folder / "etc" / name, ignore_errors=True)
    (folder / "etc/postgresql").mkdir()
    mount("--bind", str(folder / "etc"), "/etc")
    for path, left_out in PRIVATE.items():
        _rebuild(Path(path), folder / path.strip("/").replace("/", "-"), left_out)
    for path in EMPTY:
        mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", path)
    Path("/root").chmod(0o700)
    Path("/dev/shm").chmod(0o1777)  # noqa: S108 - the machine's own
    for name in ("postgresql", "caddy"):
        with suppress(KeyError):
            user = pwd.getpwnam({"postgresql": "postgres"}.get(name, name))
            (Path("/var/lib") / name).mkdir()
            os.chown(Path("/var/lib") / name, user.pw_uid, user.pw_gid)
    for path in ("/usr/lib/postgresql", "/usr/share/postgresql"):
        if (folder / "debian" / path[1:]).exists():
            mount("--bind", str(folder / "debian" / path[1:]), path)
    Path("/etc/hosts").write_text(HOSTS)


def _rebuild(path: Path, copy: Path, left_out: tuple[str, ...]) -> None:
    """Mount a new folder with the entries of the present one."""
    copy.mkdir()
    for entry in path.iterdir():
        if entry.name in left_out:
            continue
        if entry.is_symlink():
            (copy / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir():
            (copy / entry.name).mkdir()
            mount("--rbind", str(entry), str(copy / entry.name))
        elif entry.is_file():
            (copy / entry.name).touch()
            mount("--bind", str(entry), str(copy / entry.name))
    mount("--rbind", str(copy), str(path))


class Unit:
    """The [Service] or [Socket] section of a unit with its drop-ins: each setting's values."""

    def __init__(self, name: str) -> None:
        self.name = name
        prefix = f"{name.split('-', maxsplit=1)[0]}-.service.d" if "-" in name else ""
        file_name = re.sub(r"@\w+", "@", name)
        files = [each / file_name for each in UNIT_FOLDERS if (each / file_name).exists()][:1]
        if not files:
            raise UnitFailed(f"There is no unit {name}.")
        for folder in (prefix, f"{name}.d"):
            for each in UNIT_FOLDERS if folder else ():
                files += sorted((each / folder).glob("*.conf"))
        self.values: dict[str, list[str]] = {}
        self.can_be_enabled = "[Install]" in files[0].read_text()
        instance = (re.findall(r"@(\w+)", name) or [""])[0]
        for file in files:
            self._read(file.read_text().replace("\\\n", " ").replace("%i", instance))

    def _read(self, text: str) -> None:
        section = ""
        for line in text.splitlines():
            if line.startswith("["):
                section = line
            elif (
                section in {"[Service]", "[Socket]"}
                and "=" in line
                and not line.startswith(("#", ";"))
            ):
                name, _, value = line.partition("=")
                self.values.setdefault(name.strip(), []).append(value.strip())

    def first(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[-1]

    def words(self, name: str) -> list[str]:
        return [word for value in self.values.get(name, ()) for word in shlex.split(value)]

    def environment(self) -> dict[str, str]:
        user = pwd.getpwnam(self.first("User", "root"))
        found = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        found |= {"HOME": user.pw_dir, "USER": user.pw_name}
        found |= dict(word.split("=", 1) for word in self.words("Environment"))
        for file in self.values.get("EnvironmentFile", ()):
            lines = Path(file).read_text().splitlines()
            rows = (line.split("=", 1) for line in lines if "=" in line and line[0] not in "#;")
            found |= {name: value.strip().strip("\"'") for name, value in rows}
        return found

    def folders(self) -> list[str]:
        """Create the unit's own folders; return what it may write."""
        user = pwd.getpwnam(self.first("User", "root"))
        own = [Path("/var/lib") / name for name in self.words("StateDirectory")]
        own += [Path("/run") / name for name in self.words("RuntimeDirectory")]
        for path in own:
            path.mkdir(parents=True, exist_ok=True)
            os.chown(path, user.pw_uid, user.pw_gid)
        named = self.words("ReadWritePaths")
        missing = [path for path in named if path[0] != "-" and not Path(path).exists()]
        if missing:
            raise UnitFailed(f"{self.name}: {missing} does not exist.")
        wanted = [path.removeprefix("-") for path in named]
        return [str(path) for path in own] + [path for path in wanted if Path(path).exists()]

    def command(self, line: str) -> list[str]:
        """Return a command with the unit's user, rights and view of the file system."""
        user = self.first("User", "root")
        words = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        if self.first("NoNewPrivileges") == "true":
            words += ["--no-new-privs"]
        if self.values.get("CapabilityBoundingSet") == [""]:
            words += ["--bounding-set=-all", "--inh-caps=-all"]
        for name in self.words("AmbientCapabilities"):
            capability = name.removeprefix("CAP_").lower()
            words += [f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}"]
        writable = self.folders()
        if self.first("ProtectSystem") != "strict":
            return [*words, *shlex.split(line)]
        return [
            "unshare", "--mount", "--propagation=private", sys.executable, __file__,
            "--strict", json.dumps(writable), *words, *shlex.split(line),
        ]  # fmt: skip


def enter_strict(writable: list[str], command: list[str]) -> None:
    """Make the whole file system read-only but for some folders, as ProtectSystem=strict; exec."""
    folder = Path.cwd()
    for path in writable:
        mount("--bind", path, path)
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    kept = ("/proc", "/sys", "/dev", *writable)
    for point in dict.fromkeys(points):
        if not any(point == each or point.startswith(f"{each}/") for each in kept):
            subprocess.run(["mount", "-o", "remount,bind,ro", point], check=point == "/")
    for path, mode in (("/tmp", "1777"), ("/root", "0000"), ("/home", "0000")):  # noqa: S108 - in this namespace
        mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", path)
    os.chdir(folder)
    os.execvp(command[0], command)  # noqa: S606 - the unit's own


class Service:
    """A unit that runs. main: its process, as its notifications name it.

    sockets: those of its Sockets=.
    """

    def __init__(self, unit: Unit, sockets: list[socket.socket]) -> None:
        self.unit = unit
        self.sockets = sockets
        self.main = 0
        self.is_ready = threading.Event()
        self._notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = Path("/run") / f"notify-{unit.name}-{time.monotonic_ns()}"
        self._notifications.bind(str(path))
        path.chmod(0o777)
        self.environment = unit.environment() | {"NOTIFY_SOCKET": str(path)}

    def spawn(self, line: str, **variables: str) -> "subprocess.Popen[bytes]":
        command = self.unit.command(line)
        numbers = [sock.fileno() for sock in self.sockets]
        given = range(3, 3 + len(numbers))
        if numbers:
            command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *command]
            variables["LISTEN_FDS"] = str(len(numbers))

        def hand_over() -> None:
            for number, place in zip(numbers, given, strict=True):
                os.dup2(number, place)

        with (LOGS / self.unit.name).open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.unit.first("WorkingDirectory", "/"),
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=tuple(given),
                preexec_fn=hand_over,  # noqa: PLW1509 - it only duplicates descriptors
            )

    def start(self) -> None:
        if self.unit.first("Type") == "oneshot":
            fine = {0, *map(int, self.unit.words("SuccessExitStatus"))}
            for line in self.unit.values["ExecStart"]:
                status = self.spawn(line).wait()
                if status not in fine:
                    raise UnitFailed(f"{line}: status {status}")
            return
        process = self.spawn(self.unit.first("ExecStart"))
        self.main = process.pid
        if self.unit.first("Type") != "notify":
            return
        threading.Thread(target=self._listen, daemon=True).start()
        end = time.monotonic() + START_S
        while not self.is_ready.wait(0.1):
            if process.poll() is not None or time.monotonic() > end:
                raise UnitFailed(f"{self.unit.name} did not start.")

    def _listen(self) -> None:
        while True:
            for line in self._notifications.recv(4096).decode().splitlines():
                if line.startswith("MAINPID="):
                    self.main = int(line.removeprefix("MAINPID="))
                if line == "READY=1":
                    self.is_ready.set()

    def reload(self) -> None:
        """Run ExecReload, and wait until another process is the main one."""
        former = self.main
        line = self.unit.first("ExecReload").replace("$MAINPID", str(former))
        if self.spawn(line, MAINPID=str(former)).wait():
            raise UnitFailed(f"{line} failed.")
        end = time.monotonic() + START_S
        while self.main == former or is_alive(former):
            if time.monotonic() > end:
                raise UnitFailed(f"{self.unit.name} was not replaced.")
            time.sleep(0.1)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.main, signal.SIGTERM)
        end = time.monotonic() + float(self.unit.first("TimeoutStopSec", "90").removesuffix("s"))
        while is_alive(self.main):
            if time.monotonic() > end:
                os.kill(self.main, signal.SIGKILL)
            time.sleep(0.05)


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class Systemd:
    """What systemctl asks for."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.sockets: dict[str, list[socket.socket]] = {}

    def obey(self, words: list[str]) -> str:
        """Return what went wrong, '' for nothing."""
        action, *rest = words
        names = [each for each in rest if not each.startswith("-")]
        try:
            for name in names:
                self._do(action, name if "." in name else f"{name}.service", rest)
        except (UnitFailed, OSError, KeyError) as exc:
            logs = "\n".join(each.read_text()[-4000:] for each in LOGS.iterdir())
            return f"{words}: {exc!r}\n{logs}"
        return "" if names or action == "daemon-reload" else f"{words} is not known here."

    def _do(self, action: str, name: str, rest: list[str]) -> None:
        if name.endswith(".timer"):
            if not any((each / name).exists() for each in UNIT_FOLDERS):
                raise UnitFailed(f"There is no {name}.")
            return
        if action == "enable" and not Unit(name).can_be_enabled:
            raise UnitFailed(f"{name} has no [Install].")
        if name.endswith(".socket"):
            self._do_socket(action, Unit(name))
            return
        if action in {"stop", "restart"} and name in self.services:
            self.services.pop(name).stop()
        if action in {"start", "restart"} or (action == "enable" and "--now" in rest):
            unit = Unit(name)
            service = Service(unit, self.sockets.get(unit.first("Sockets"), []))
            service.start()
            if service.main:
                self.services[name] = service
        if action == "reload":
            self.services[name].reload()

    def _do_socket(self, action: str, unit: Unit) -> None:
        """Listen for the services that have this unit's sockets, or no more."""
        for sock in self.sockets.pop(unit.name, []):
            sock.close()
        if action == "stop":
            return
        listens = [each.rpartition(":") for each in unit.words("ListenStream")]
        made = [socket.create_server((host, int(port))) for host, _, port in listens]
        # Above those that a service gets: it is given copies.
        self.sockets[unit.name] = [_above(sock, 3 + len(made)) for sock in made]


def _above(sock: socket.socket, first: int) -> socket.socket:
    """Return the socket with a descriptor from a number on."""
    with sock:
        return socket.socket(fileno=fcntl.fcntl(sock, fcntl.F_DUPFD_CLOEXEC, first))


def serve() -> None:
    """Answer systemctl one after the other, and reap what ends."""
    known = Systemd()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(CONTROL)
        server.listen()
        server.settimeout(0.2)
        print("ready", flush=True)  # noqa: T201 - the test waits for it
        while True:
            try:
                asked, _ = server.accept()
            except TimeoutError:
                for pid in orphans():
                    with suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
                continue
            with asked, asked.makefile("rw") as stream:
                stream.write(json.dumps(known.obey(json.loads(stream.readline()))) + "\n")


def orphans() -> Iterator[int]:
    """Yield the children of this process that have ended."""
    text = Path("/proc/1/task/1/children").read_text()
    yield from (int(pid) for pid in text.split() if not is_alive(int(pid)))


def main(words: list[str]) -> None:
    if words[0] == "--strict":
        enter_strict(json.loads(words[1]), words[2:])
    folder = Path(words[0])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    make_private(folder)
    LOGS.mkdir()
    programs = folder / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    serve()


if __name__ == "__main__":
    main(sys.argv[1:])
