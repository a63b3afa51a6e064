"""One of every kind that a platform can hold."""

import hashlib
import secrets
import uuid
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.utils import timezone

from accounts.models import User
from audit import trail
from billing.models.ledger import Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.models.usage import Charge, UsageLine
from common.crypto import encrypt
from edgecache.brain.disk.data_directory import objects_folder
from edgecache.brain.models.buckets import AccessKey, Bucket
from edgecache.brain.models.objects import Blob, NoncurrentVersion, SmallBody, StoredObject
from edgecache.brain.models.stores import DiscardedBytes, Store, StoredBlob
from environments import environments
from environments.models import Organization
from organizations.audit_tags import OrganizationTag
from outbox.messages import queue
from tests import cast, commands
from tests.platform_site.staff import rows
from twofactor.models import BackupCode, Factor, Passkey, TrustedDevice

OBJECTS = 12
TABLES = """
CREATE TABLE notes (id int PRIMARY KEY, body text);
INSERT INTO notes VALUES (1, 'kept'), (2, 'as well');
CREATE TABLE salaries (amount int);
REVOKE ALL ON salaries FROM PUBLIC;
CREATE EXTENSION hstore;
CREATE TABLE counted (id int GENERATED ALWAYS AS IDENTITY, owner text DEFAULT 'alice');
INSERT INTO counted DEFAULT VALUES;
INSERT INTO counted DEFAULT VALUES;
CREATE SEQUENCE tickets START 7 INCREMENT 5;
SELECT nextval('tickets');
CREATE VIEW bodies AS SELECT upper(body) AS body FROM notes;
CREATE FUNCTION doubled(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n';
ALTER TABLE counted ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON counted FOR SELECT USING (owner = 'alice');
"""
# Bytes that a made-up store has: they would be looked for, or deleted.
NOT_MADE: Final = frozenset({StoredBlob, DiscardedBytes})
QUEUE: Final = """
INSERT INTO procrastinate_workers DEFAULT VALUES;
INSERT INTO procrastinate_periodic_defers (task_name, defer_timestamp, periodic_id)
VALUES ('a task', 1, '');
"""


def fill() -> Organization:
    """Fill the platform; return Alice's organization."""
    home = cast.organization()
    environments.create(home.pk, "sandbox-2")
    alice = cast.member(home, password=cast.PASSWORD)
    cast.member(home, "bob@example.com", role="reader")
    charlie = cast.member(cast.organization("Charlie's"), "charlie@example.org")
    for user, environment in ((alice, "live"), (alice, "sandbox-2"), (charlie, "live")):
        answer = cast.signed_in(user, environment).post("/v1/sql", {"query": TABLES})
        assert answer.status == 200, answer.body
    trail.add(None, OrganizationTag.CLI_MEMBER_CREATE, organization_id=home.pk)
    code: dict[str, str | int | bool | None] = {"code": "493817", "purpose": "to sign in"}
    queue.send_mail(
        alice.email, "email_code", code | {"minutes": 10}, organization_id=alice.organization_id
    )
    _factors(alice)
    _money(home.pk)
    add_objects(home.pk, OBJECTS)
    commands.run("setquota", str(home.pk), "--disk-bytes", str(2**40))
    _rest()
    return home


def _rest() -> None:
    """Add a row of each model that has none; a model that is new gets one, too."""
    made = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and model not in NOT_MADE
    ]
    owners: dict[type[models.Model], models.Model] = {}
    for model in made:
        first = model._base_manager.order_by("pk").first()
        if first is not None:
            owners[model] = first
    for model in made:
        if model not in owners:
            rows.add(model, 1, owners=owners)
    with connection.cursor() as cursor:
        cursor.execute(QUEUE)


def _factors(user: User) -> None:
    now = timezone.now()
    of: dict[str, Any] = {"user": user, "organization": user.organization, "created_at": now}
    Factor.objects.create(method="totp", secret=encrypt("JBSWY3DPEHPK3PXP"), **of)
    passkeys = Factor.objects.create(method="webauthn", **of)
    Passkey.objects.create(
        factor=passkeys,
        credential_id=b"id",
        public_key=b"key",
        rp_id="localhost",
        name="My key",
        created_at=now,
    )
    codes = Factor.objects.create(method="backup_codes", **of)
    BackupCode.objects.create(factor=codes, digest="d" * 64)
    TrustedDevice.objects.create(
        organization=user.organization,
        user=user,
        name="Phone",
        created_at=now,
        rotated_at=now,
        last_used_at=now,
        expires_at=now,
    )


def _money(organization_id: int) -> None:
    commands.run("grantcredits", str(organization_id), "1000", "--reason", "a gift")
    method = PayoutMethod.objects.create(
        organization_id=organization_id,
        kind="manual",
        details={"account": "DE02"},
        usable_from=timezone.now(),
        created_by="alice@example.com",
    )
    Payout.objects.create(
        organization_id=organization_id,
        method=method,
        amount_cents=5,
        amount_ucr=5_000_000,
        currency="usd",
        state="debited",
        requested_by="alice@example.com",
    )
    _charge(organization_id)


def _charge(organization_id: int) -> None:
    """Add ten hits that were charged; their days' sums follow by triggers."""
    line = UsageLine.objects.create(
        line_id=uuid.uuid4(),
        kind="hit",
        used_at=timezone.now(),
        organization_id=organization_id,
        environment_pk=1,
        bucket_id=1,
        node_id=uuid.uuid4(),
        operator_id=organization_id,
        quantity=10,
    )
    Charge.objects.create(
        line=line,
        organization_id=organization_id,
        journal=Journal.objects.order_by("pk")[0],
        rate_ucr=100,
        charge_ucr=1000,
        granted_ucr=1000,
        paid_ucr=0,
        unpaid_ucr=0,
        share_ppm=0,
        share_ucr=0,
    )


def add_objects(organization_id: int, count: int) -> None:
    """Add a bucket with this many objects of up to 140 kB in the store, and a small one."""
    environment = environments.find(organization_id, "live")
    mine = {"organization_id": organization_id, "environment_pk": environment.pk}
    bucket = Bucket.objects.create(**mine, name="files", public_name=secrets.token_hex(8))
    AccessKey.objects.create(id="ZKTEST", **mine, secret=encrypt("secret"))
    store, _ = Store.objects.get_or_create(name="file://", defaults={"tag": "tag"})
    for number in range(count + 1):
        body = f"object {number}\n".encode() * (number + 1)
        digest = hashlib.sha256(body)
        blob = Blob.objects.create(
            sha256=digest.digest(), size=len(body), md5=b"m" * 16, crc32=0, chunks=b""
        )
        StoredObject.objects.create(
            bucket=bucket,
            key=f"folder/{number}.txt",
            blob=blob,
            etag="e",
            content_type="text/plain",
            last_modified=timezone.now(),
            position=2,
        )
        if number == 0:
            NoncurrentVersion.objects.create(
                bucket=bucket,
                key="folder/0.txt",
                blob=blob,
                position=1,
                last_modified=timezone.now(),
            )
        if number == count:
            SmallBody.objects.create(blob=blob, body=body)
            continue
        name = f"tag/{number}"
        path = objects_folder(settings.BRAIN.data_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        StoredBlob.objects.create(**mine, blob=blob, store=store, name=name)
