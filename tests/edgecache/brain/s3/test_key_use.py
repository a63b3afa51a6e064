"""When an access key was used last: when it signed a request, not when somebody named it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.crypto import encrypt
from edgecache.brain.access import access_keys
from edgecache.brain.access.access_keys import AccessKeys
from edgecache.brain.access.platform_keys import PlatformKeys
from tests.edgecache.brain.brains import Brain, Rows
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys, until


def last_used(cluster: Cluster, keys: Keys) -> Any:
    """Return when the platform says that a key was used."""
    (row,) = cluster.call("GET", f"/v1/access-keys?{keys.scope}")["access_keys"]
    return row["last_used_at"]


def test_only_a_correct_signature_uses_a_key(cluster: Cluster, keys: Keys) -> None:
    wrong = Keys(1, 1, keys.access_key, "x" * 40)
    assert Signer(wrong, cluster.url).send("GET", "/docs/a").code == "SignatureDoesNotMatch"
    preflight = {"origin": "https://evil.example", "access-control-request-method": "PUT"}
    send(cluster.url, "OPTIONS", f"/docs/a?AWSAccessKeyId={keys.access_key}", preflight)
    assert last_used(cluster, keys) is None
    assert Signer(keys, cluster.url).send("GET", "/").status == 200
    until(lambda: last_used(cluster, keys) is not None)


async def test_the_use_of_a_key_that_stays_in_memory_is_written_again(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.run(
        "INSERT INTO brain_accesskey (id, organization_id, environment_pk, secret, last_used_at)"
        " VALUES ('ZK1', 1, 11, %s, now() - interval '30 days')",
        [encrypt("secret")],
    )
    keys = AccessKeys(brain.database, brain.coherence, PlatformKeys(["secret"]))
    key = await keys.find("ZK1")
    assert key is not None
    for again_s in (access_keys.USED_AGAIN_S, 0.0):
        monkeypatch.setattr(access_keys, "USED_AGAIN_S", again_s)
        rows.run("UPDATE brain_accesskey SET last_used_at = now() - interval '30 days'")
        keys.note_use(key)
        await keys.writes.finish()
        ((used_at,),) = rows.all("SELECT last_used_at FROM brain_accesskey")
        assert datetime.now(UTC) - used_at < timedelta(minutes=1)
