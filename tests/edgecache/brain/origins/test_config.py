"""Origins' configurations: validation by field, and secrets that are never returned."""

from typing import Any

import pytest

from edgecache.brain.core.errors import BrainError, Invalid, OriginExists
from tests.edgecache.brain.brains import ALICE, Brain, Rows

pytestmark = pytest.mark.slow


async def test_a_wrong_configuration_is_refused_with_its_field(strict: Brain) -> None:
    cases: list[tuple[str, dict[str, Any], dict[str, Any] | None, str]] = [
        ("file", {"url": "file:///"}, None, "kind"),
        ("http", {"url": "file:///etc/passwd"}, None, "config.url"),
        ("http", {"url": "ftp://example.com"}, None, "config.url"),
        ("http", {"url": "http://user:pw@example.com"}, None, "config.url"),
        ("http", {"url": "http://example.com/?q"}, None, "config.url"),
        ("http", {"url": "http://example.com/?"}, None, "config.url"),
        ("http", {"url": "http://example.com/\0"}, None, "config.url"),
        ("http", {"url": "http://example.com/\x01"}, None, "config.url"),
        ("http", {"url": "http://exa mple.com/"}, None, "config.url"),
        ("http", {"url": "http://example.com:99999/"}, None, "config.url"),
        ("http", {"url": "http:///x"}, None, "config.url"),
        ("http", {}, None, "config.url"),
        ("http", {"url": 5}, None, "config.url"),
        ("http", {"url": "http://a.b", "path": "/"}, None, "config.path"),
        ("http", {"url": "http://a.b"}, {"authorization": "x\r\nHost: y"}, "secret.authorization"),
        (
            "s3",
            {"bucket": "b" * 3, "region": "eu", "endpoint": "http://a.b"},
            None,
            "config.endpoint",
        ),
        ("s3", {"bucket": "../x", "region": "eu"}, None, "config.bucket"),
        ("s3", {"bucket": "bbb", "region": "EU west"}, None, "config.region"),
        (
            "s3",
            {"bucket": "bbb", "region": "eu"},
            {"access_key_id": "a"},
            "secret.secret_access_key",
        ),
        ("s3", {"bucket": "bbb", "region": "eu", "profile": "default"}, None, "config.profile"),
        ("gcs", {"bucket": "bbb"}, {"service_account": "{}"}, "secret.service_account"),
        ("gcs", {"bucket": "bbb"}, {"access_key_id": "GOOG1E"}, "secret.secret_access_key"),
        ("gcs", {"bucket": "bbb", "region": "eu"}, None, "config.region"),
        ("azure", {"account": "acc", "container": "ccc"}, None, "kind"),
    ]
    for kind, config, secret, field in cases:
        with pytest.raises(Invalid) as caught:
            await strict.catalog.create(ALICE, "o", kind, config, secret)

        assert field in {error.field for error in caught.value.errors}


async def test_secrets_are_stored_and_never_returned(brain: Brain, rows: Rows) -> None:
    secret = {"access_key_id": "AKIA", "secret_access_key": "hush-hush"}
    config = {"bucket": "bbb", "region": "eu"}

    made = await brain.catalog.create(ALICE, "o", "s3", config, secret)

    assert made.has_secret
    assert "hush" not in repr(made)
    assert await brain.catalog.list(ALICE) == [made]
    assert "hush" not in str(rows.all("SELECT * FROM brain_origin"))
    with pytest.raises(OriginExists):
        await brain.catalog.create(ALICE, "o", "s3", config, secret)


async def test_an_origin_in_use_cannot_be_deleted(brain: Brain) -> None:
    bucket = await brain.origin_bucket("http", {"url": "http://127.0.0.1:1"})
    assert bucket.origin_id is not None

    with pytest.raises(BrainError, match="still has this origin"):
        await brain.catalog.delete(ALICE, bucket.origin_id)
    await brain.buckets.delete(ALICE, bucket.id)
    await brain.catalog.delete(ALICE, bucket.origin_id)
    with pytest.raises(BrainError, match="no such origin"):
        await brain.catalog.delete(ALICE, bucket.origin_id)
