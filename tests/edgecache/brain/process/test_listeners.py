"""The brain's ports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from django.conf import settings

from common.machine.errors import PortTakenError
from edgecache.brain.conf.brain import BrainSettings, Listener
from edgecache.brain.process.listeners import Listeners, port_server
from edgecache.brain.process.sockets import open_sockets
from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from edgecache.runtime.turns import LoopTurns
from tests.ports import free_port


async def client_address(scope: HttpScope, exchange: Exchange) -> None:
    """Respond with the client's address."""
    exchange.response_bytes(200, [], scope.client_address.encode())


def chosen(*, port: int = 0) -> BrainSettings:
    """Return settings with free ports."""

    def listener(port_setting: str, port: int = 0) -> Listener:
        return Listener("127.0.0.1", port or free_port(), port_setting)

    return replace(
        settings.BRAIN,
        internal=listener("ZBRAIN_PORT"),
        workers=listener("ZBRAIN_WORKER_PORT"),
        s3=listener("ZBRAIN_S3_PORT", port),
    )


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """Serve on a free port; yield it."""
    rows = chosen()
    sockets = open_sockets(rows, {})
    listeners = Listeners({"objects": port_server(client_address, rows.s3, LoopTurns())})
    await listeners.start(sockets)
    try:
        yield rows.s3.port
    finally:
        await listeners.stop(timeout_s=5)
        for sock in sockets.values():
            sock.close()


async def test_a_port_in_use_is_refused_with_its_setting() -> None:
    async with listening() as port:
        with pytest.raises(PortTakenError, match="ZBRAIN_S3_PORT"):
            open_sockets(chosen(port=port), {})
