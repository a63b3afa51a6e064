"""Caddy, nginx and HAProxy with the files of deploy/, and a client that comes from elsewhere."""

import http.client
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.deploy.tools import DEPLOY, NAMES, program
from tests.edgecache.brain.certificates import issue
from tests.edgecache.brain.s3.raw import Answer
from tests.ports import free_port
from tests.waiting import wait_until

APP, OBJECTS = NAMES["ZONAL_DOMAIN"], NAMES["ZONAL_OBJECTS_DOMAIN"]
# An address of this machine that is not the proxy's.
CLIENT: Final = "127.0.0.2"
START_S: Final = 30.0


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs. plain_port: of HTTP without TLS, 0 where the program has its own rule."""

    port: int
    plain_port: int
    trust: ssl.SSLContext

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        host: str = APP,
        source: str = CLIENT,
    ) -> Answer:
        """Send a request over TLS. source: the client's address."""
        client = http.client.HTTPSConnection(host)
        client.sock = self.connect(host, source)
        return _ask(client, method, target, {"Host": host, **(headers or {})}, body)

    def connect(self, host: str = APP, source: str = CLIENT) -> ssl.SSLSocket:
        """Return a TLS connection. source: the client's address."""
        connection = socket.create_connection(("127.0.0.1", self.port), 30, (source, 0))
        return self.trust.wrap_socket(connection, server_hostname=host)

    def ask_plainly(self, target: str) -> Answer:
        """Send a request without TLS."""
        client = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=30)
        return _ask(client, "GET", target, {"Host": APP}, b"")


def _ask(
    client: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
) -> Answer:
    with closing(client):
        client.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            client.putheader(name, value)
        if body:
            client.putheader("Content-Length", str(len(body)))
        client.endheaders(body or None)
        answer = client.getresponse()
        content = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, content)


def _caddy(folder: Path, pem: Path, port: int, _plain: int) -> list[str]:
    text = (DEPLOY / "Caddyfile").read_text()
    text = text.replace("{\n\temail", "{\n\tadmin off\n\tauto_https disable_redirects\n\temail", 1)
    site = rf"\1:{port} {{\n\ttls {pem} {pem}"
    text = re.sub(r"^(\{\$ZONAL_\w*DOMAIN\}) \{", site, text, flags=re.MULTILINE)
    (folder / "Caddyfile").write_text(text)
    return [program("caddy", package="caddy"), "run", "--config", f"{folder}/Caddyfile"]


def _nginx(folder: Path, pem: Path, port: int, plain: int) -> list[str]:
    text = (DEPLOY / "nginx.conf").read_text()
    text = re.sub(r"^ +listen \[::\].*\n", "", text, flags=re.MULTILINE)
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    text = text.replace("listen 80", f"listen 127.0.0.1:{plain}")
    text = re.sub(r"/etc/zonal/tls/\w+\.pem", str(pem), text)
    (folder / "zonal.conf").write_text(text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; events {{}}\n"
        f"http {{ access_log off; {folders} include {folder}/zonal.conf; }}\n"
    )
    return [
        program("nginx", package="nginx-light"),
        "-p",
        str(folder),
        "-c",
        f"{folder}/nginx.conf",
    ]


def _haproxy(folder: Path, pem: Path, port: int, plain: int) -> list[str]:
    text = (DEPLOY / "haproxy.cfg").read_text()
    text = re.sub(r"^    (user|group) haproxy\n", "", text, flags=re.MULTILINE)
    text = text.replace("bind :443", f"bind 127.0.0.1:{port}")
    text = text.replace("bind :80", f"bind 127.0.0.1:{plain}")
    (folder / "haproxy.cfg").write_text(text.replace("/etc/zonal/tls/haproxy", str(pem)))
    return [program("haproxy", package="haproxy"), "-db", "-f", f"{folder}/haproxy.cfg"]


Writer = Callable[[Path, Path, int, int], list[str]]
PROXIES: Final[dict[str, Writer]] = {"caddy": _caddy, "nginx": _nginx, "haproxy": _haproxy}


@contextmanager
def running(
    name: str,
    folder: Path,
    *,
    web_port: int,
    brain_port: int,
    edit: Callable[[str], str] = lambda text: text,
) -> Iterator[Proxy]:
    """Run a proxy with its file of deploy/, on other ports and with a certificate of the test.

    edit: returns the text of the file of nginx or HAProxy as an operator has changed it.
    """
    folder.mkdir()
    authority, _ = issue(folder, APP, OBJECTS)
    port, plain_port = free_port(), free_port()
    command = PROXIES[name](folder, folder / "server.pem", port, plain_port)
    for file in (folder / "zonal.conf", folder / "haproxy.cfg"):
        if file.exists():
            text = edit(file.read_text()).replace("127.0.0.1:8000", f"127.0.0.1:{web_port}")
            file.write_text(text.replace("127.0.0.1:9000", f"127.0.0.1:{brain_port}"))
    environment = {
        **NAMES,
        "ZONAL_WEB": f"127.0.0.1:{web_port}",
        "ZONAL_OBJECTS": f"127.0.0.1:{brain_port}",
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    trust = ssl.create_default_context(cafile=str(authority))
    made = Proxy(port, 0 if name == "caddy" else plain_port, trust)
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, timeout_s=START_S)
        assert process.poll() is None, (folder / "log").read_text()
        yield made
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
