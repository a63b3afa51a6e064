"""A name server on loopback, over UDP and, for truncated answers, TCP."""

import socketserver
import struct
import threading
from typing import Any, Self

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

PLENTY = 400


class NameServer:
    """Answers for TXT records. records: texts by name; rcode: of every answer; is_silent: none."""

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
        self.rcode = dns.rcode.NOERROR
        self.is_silent = False
        self.asked: list[str] = []
        self.udp, self.tcp = _listen()
        self.udp.names = self.tcp.names = self
        self.threads = [
            threading.Thread(target=server.serve_forever, args=(0.01,))
            for server in (self.udp, self.tcp)
        ]

    @property
    def address(self) -> tuple[str, int]:
        """Return the address that it listens on."""
        host, port = self.udp.server_address[:2]
        return str(host), port

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self.udp, self.tcp):
            server.shutdown()
            server.server_close()
        for thread in self.threads:
            thread.join()

    def answer(self, wire: bytes, *, is_udp: bool) -> bytes:
        """Return the answer to a question; b'' for none."""
        question = dns.message.from_wire(wire)
        name = question.question[0].name
        self.asked.append(name.to_text(omit_final_dot=True))
        if self.is_silent:
            return b""
        answer = dns.message.make_response(question)
        texts = self.records.get(self.asked[-1].lower())
        answer.set_rcode(self.rcode if texts is not None or self.rcode else dns.rcode.NXDOMAIN)
        if texts and is_udp and len(texts) > PLENTY:
            answer.flags |= dns.flags.TC
        elif texts:
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *map(quoted, texts)))
        return answer.to_wire(max_size=65535)


def quoted(text: str) -> str:
    """Return a text in strings of at most 255 bytes, as in a zone file."""
    parts = [text[at : at + 200] for at in range(0, len(text), 200)]
    return " ".join(f'"{part}"' for part in parts)


def _listen() -> tuple["_Udp", "_Tcp"]:
    """Return servers on one port: a port that is free for UDP may be taken for TCP."""
    for _ in range(50):
        udp = _Udp(("127.0.0.1", 0), _UdpHandler)
        try:
            return udp, _Tcp(udp.server_address, _TcpHandler)
        except OSError:
            udp.server_close()
    raise RuntimeError("No port is free.")


class _Udp(socketserver.ThreadingUDPServer):
    daemon_threads = True
    names: Any = None


class _Tcp(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    names: Any = None


class _UdpHandler(socketserver.BaseRequestHandler):
    server: _Udp

    def handle(self) -> None:
        wire, socket = self.request
        answer = self.server.names.answer(wire, is_udp=True)
        if answer:
            socket.sendto(answer, self.client_address)


class _TcpHandler(socketserver.BaseRequestHandler):
    server: _Tcp

    def handle(self) -> None:
        (length,) = struct.unpack("!H", self.request.recv(2))
        wire = self.request.recv(length)
        answer = self.server.names.answer(wire, is_udp=False)
        if answer:
            self.request.sendall(struct.pack("!H", len(answer)) + answer)
