"""A small Ceph cluster on loopback: a monitor, an OSD in memory, and a RADOS gateway.

Needs Debian's ceph-mon, ceph-osd, ceph-common and radosgw. cephx with a keyring of its own:
radosgw knows no other authentication.
"""

import shutil
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.ports import free_port

PROGRAMS: Final = ("ceph-mon", "ceph-osd", "ceph", "ceph-authtool", "monmaptool", "radosgw")
START_S: Final = 120.0
STOP_S: Final = 20.0
COMMAND_S: Final = 60
ACCESS_KEY: Final = "zonal-access"
SECRET_KEY: Final = "zonal-secret"
CONFIG: Final = """\
[global]
fsid = {fsid}
mon host = {monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket =
pid file =
log file = {folder}/$name.log
mon data = {folder}/mon
mon allow pool size one = true
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw dynamic resharding = false
rgw run sync thread = false
"""
CAPS: Final = {
    "mon.": ("mon", "allow *"),
    "client.admin": ("mon", "allow *", "osd", "allow *", "mgr", "allow *"),
    "osd.0": ("mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd"),
    "client.rgw": ("mon", "allow rw", "osd", "allow rwx"),
}


def missing() -> list[str]:
    """Return the programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@dataclass
class Rados:
    """A cluster. folder: an empty one, of a short path."""

    folder: Path
    port: int = field(default_factory=free_port)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Return the gateway's URL."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "Rados":
        """Start everything, and create the user."""
        fsid, port = str(uuid.uuid4()), free_port()
        monitor = f"[v2:127.0.0.1:{port}]"
        for name in ("mon", "osd", "rgw"):
            (self.folder / name).mkdir()
        text = CONFIG.format(fsid=fsid, monitor=monitor, folder=self.folder, port=self.port)
        (self.folder / "ceph.conf").write_text(text)
        self._make_keys()
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", monitor, self._map)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", self._map, "--keyring", self._keys)
        self._spawn("mon", "ceph-mon", "-i", "a", "-f")
        osd = str(uuid.uuid4())
        self._run("ceph", "--connect-timeout", "30", "osd", "new", osd, "0")
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._spawn("osd", "ceph-osd", "-i", "0", "-f")
        self.start_gateway()
        user = ("--uid", "zonal", "--display-name", "zonal")
        keys = ("--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)
        self._run("radosgw-admin", "-n", "client.rgw", "user", "create", *user, *keys)
        return self

    def start_gateway(self) -> None:
        """Start the gateway, and wait until it answers."""
        self._spawn("gateway", "radosgw", "-n", "client.rgw", "-f")
        end = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(self.url, timeout=5).close()  # noqa: S310 - http, as above
            except urllib.error.HTTPError:
                return
            except OSError:
                if time.monotonic() > end or self.processes["gateway"].poll() is not None:
                    raise RuntimeError((self.folder / "gateway.out").read_text()[-2000:]) from None
                time.sleep(0.2)
            else:
                return

    def kill_gateway(self) -> None:
        """End the gateway as a power cut would."""
        self.processes["gateway"].kill()
        self.processes["gateway"].wait()

    def stop(self) -> None:
        """End everything."""
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @property
    def _keys(self) -> str:
        return str(self.folder / "keyring")

    @property
    def _map(self) -> str:
        return str(self.folder / "monmap")

    def _make_keys(self) -> None:
        self._run("ceph-authtool", "--create-keyring", self._keys)
        for name, caps in CAPS.items():
            pairs = zip(caps[::2], caps[1::2], strict=True)
            words = [word for pair in pairs for word in ("--cap", *pair)]
            self._run("ceph-authtool", self._keys, "--gen-key", "-n", name, *words)

    def _run(self, program: str, *words: str) -> None:
        configured = () if program in {"ceph-authtool", "monmaptool"} else ("-c", self._config)
        done = subprocess.run(
            [program, *configured, *words], capture_output=True, timeout=COMMAND_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{program} {words}: {done.stderr.decode()[-2000:]}")

    def _spawn(self, name: str, program: str, *words: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [program, "-c", self._config, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def _config(self) -> str:
        return str(self.folder / "ceph.conf")
