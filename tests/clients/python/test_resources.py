"""Everything but SQL and sessions, through the Python client."""

import urllib.request
from datetime import date

import httpx
import pytest

import zonal
from tests import cast
from tests.clients.conftest import Platform
from tests.clients.front import Front


def test_environments_are_made_renamed_and_deleted(client: zonal.Client) -> None:
    client.sql.query("CREATE TABLE copied AS SELECT 1 AS n")
    made = client.environments.create("Staging 7", environment_id="staging-7", copy_of="live")
    assert made.database_state in {"copying", "ready"}
    assert client.environments.rename(made.id, "Stage").name == "Stage"
    assert made.id in [each.id for each in client.environments.list()]
    client.environments.delete(made.id)
    with pytest.raises(zonal.NotFoundError, match="environment_not_found"):
        client.environments.get(made.id)


def test_pages_follow_one_another_on_this_host_only(
    platform: Platform, client: zonal.Client, front: Front
) -> None:
    cast.member(platform.home, "bob@example.com", role="reader")
    cast.member(platform.home, "carol@example.com", role="operator")
    pages = [
        b'{"results": [%b], "previous": null, "next": "https://evil.example.com/x?cursor=a%%3D"}',
        b'{"results": [], "previous": null, "next": null}',
    ]
    member = (
        b'{"user_id": "u", "email": null, "email_verified": true, "roles": [], "labels": [],'
        b'"derived_roles": [], "disabled": false, "created_at": "2026-11-23T08:00:00Z",'
        b'"last_login_at": null, "added_in_a_later_release": 1}'
    )
    front.answer(200, pages[0] % member)
    front.answer(200, pages[1])
    assert [each.created_at.year for each in client.members.list()] == [2026]
    assert front.seen == [("GET", "/v1/members")] * 2
    assert [each.email for each in client.members.list(role="reader")] == ["bob@example.com"]


def test_members_are_changed_and_invited(platform: Platform, client: zonal.Client) -> None:
    user = cast.member(platform.home, "dave@example.com", role="reader")
    changed = client.members.update(str(user.pk), roles=["operator"], labels=["on call"])
    assert (changed.roles, changed.labels) == (["operator"], ["on call"])
    client.members.remove(str(user.pk))
    with pytest.raises(zonal.NotFoundError, match="member_not_found"):
        client.members.get(str(user.pk))
    invited = client.members.invite("erin@example.com", ["reader"])
    listed = client.members.invitations(email="erin@example.com")
    assert [each.id for each in listed] == [invited.id]
    client.members.revoke_invitation(invited.id)


def test_an_older_version_is_read_restored_and_deleted(client: zonal.Client) -> None:
    buckets = client.buckets
    name = buckets.create("client-versions").name
    assert buckets.update(name, versioning="Enabled").versioning == "Enabled"
    for content in (b"first", b"second"):
        buckets.upload(name, "k", content)
    buckets.delete_objects(name, ["k"])
    marker, _, first = buckets.versions(name, prefix="k")
    assert (marker.is_delete_marker, marker.is_latest, first.size) == (True, True, 5)
    link = buckets.download_url(name, "k", version_id=first.version_id)
    assert httpx.get(link.url).content == b"first"
    restored = buckets.restore_version(name, "k", first.version_id)
    assert next(iter(buckets.versions(name))).version_id == restored
    for each in buckets.versions(name):
        buckets.delete_version(name, each.key, each.version_id)
    assert list(buckets.versions(name)) == []
    buckets.delete(name)


def test_wrong_fields_are_named(client: zonal.Client) -> None:
    with pytest.raises(zonal.ProblemError) as caught:
        client.members.invite("no address", ["reader"])
    assert [each["field"] for each in caught.value.errors] == ["email"]
    assert "email" in str(caught.value)


def test_a_file_goes_into_a_bucket_and_comes_back(client: zonal.Client) -> None:
    bucket = client.buckets.create("client-files", is_public=True)
    assert bucket.is_public
    upload = client.buckets.upload_url(bucket.name, "a b/ü.txt", content_type="text/plain")
    request = urllib.request.Request(  # noqa: S310 - the test's own brain
        upload.urls[0], b"hello", {"Content-Type": "text/plain"}, method=upload.method
    )
    urllib.request.urlopen(request).close()  # noqa: S310 - as above
    (found,) = client.buckets.objects(bucket.name, prefix="a b/")
    assert (found.key, found.size) == ("a b/ü.txt", 5)
    assert client.buckets.object(bucket.name, found.key).content_type == "text/plain"
    form = client.buckets.upload_form(bucket.name, prefix="in/", max_bytes=5)
    assert "signature" not in repr(form)
    sent = httpx.post(form.url, data=form.fields, files={"file": ("c.txt", b"hello")})
    assert sent.status_code == 204
    client.buckets.delete_objects(bucket.name, ["in/c.txt"])
    link = client.buckets.download_url(bucket.name, found.key)
    assert link.url not in repr(link)
    with urllib.request.urlopen(link.url) as answer:  # noqa: S310 - as above
        assert answer.read() == b"hello"
    signed = client.buckets.signed_link(bucket.name, prefix="a b/", expires_in_s=60)
    assert signed.query not in repr(signed)
    with urllib.request.urlopen(signed.url.replace("?", "%C3%BC.txt?")) as answer:  # noqa: S310 - as above
        assert answer.read() == b"hello"
    client.buckets.revoke_signed_links(bucket.name)
    purged = client.cache.purge(keys=[f"{bucket.name}/{found.key}"], preview=True)
    assert purged.objects_purged >= 0
    assert client.cache.purge(tags=[f"{bucket.name}/none"]).objects_purged == 0
    client.buckets.delete_objects(bucket.name, [found.key])
    assert not client.buckets.update(bucket.name, is_public=False).is_public
    client.buckets.delete(bucket.name)
    assert bucket.name not in [each.name for each in client.buckets.list()]


def test_access_keys_have_a_secret_once(client: zonal.Client) -> None:
    made = client.access_keys.create("backup", access="read")
    assert made.secret_access_key not in repr(made)
    assert "backup" in [each.label for each in client.access_keys.list()]
    client.access_keys.delete(made.access_key_id)
    with pytest.raises(zonal.NotFoundError, match="access_key_not_found"):
        client.access_keys.delete(made.access_key_id)


def test_the_cache_and_usage_have_figures(client: zonal.Client) -> None:
    assert client.cache.status().brain_healthy
    assert client.cache.metrics().active_nodes >= 0
    usage = client.usage(since=date(2026, 11, 1), until=date(2026, 11, 2))
    assert usage.since == date(2026, 11, 1)
