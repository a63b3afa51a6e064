"""The settings of the managed store: what each URL means, and sentences for wrong ones."""

import pytest

from common.settings.env import Env, SettingError
from edgecache.brain.conf.stores import StoreSettings, StoreUrl, parse_url, read_stores


def stores(**variables: str) -> tuple[StoreSettings, ...]:
    """Read the settings."""
    return read_stores(Env({f"ZBRAIN_STORE_{name}": value for name, value in variables.items()}))


def test_the_data_directory_is_the_default() -> None:
    (chosen,) = stores()
    assert (chosen.name, chosen.parts.path) == ("file://", "")


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("file:///mnt/objects", StoreUrl("file", "", "/mnt/objects")),
        ("s3://my.bucket", StoreUrl("s3", "my.bucket", "")),
        ("s3://bucket/a/b", StoreUrl("s3", "bucket", "a/b")),
        ("gs://bucket/a", StoreUrl("gs", "bucket", "a")),
    ],
)
def test_a_url_names_a_bucket_and_a_prefix(url: str, parts: StoreUrl) -> None:
    assert parse_url(url) == parts


@pytest.mark.parametrize(
    "url",
    [
        "bucket",
        "ftp://bucket",
        "s3://",
        "s3://key:secret@bucket",
        "s3://@bucket",
        "s3://bucket?region",
        "s3://bucket?endpoint=s3.example.com",
        "s3://bucket?endpoint=https://e.example/path",
        "gs://key@bucket?region=eu",
        "az://account/container",
        "file://key@/folder",
        "file:///folder?endpoint=https://e.example",
        "file:///",
        "s3://bucket/a/../b",
        "s3://bucket//a",
        "s3://bucket?x=1",
        "file://host/folder",
        "file:///mnt/../etc",
    ],
)
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="ZBRAIN_STORE_URL"):
        stores(URL=url, SECRET_KEY="s")


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"URL": "s3://b", "SECRET_KEY": "s"}, "ZBRAIN_STORE_URL"),
        ({"URL": "s3://a@b"}, "ZBRAIN_STORE_SECRET_KEY"),
        ({"URL": "gs://b", "SECRET_KEY": "s"}, "ZBRAIN_STORE_URL"),
        ({"URL": "gs://a@b"}, "ZBRAIN_STORE_SECRET_KEY"),
        ({"NEXT_URL": "s3://b"}, "ZBRAIN_STORE_NEXT_URL"),
        ({"URL": "file:///a", "NEXT_URL": "file:///a/"}, "ZBRAIN_STORE_NEXT_URL"),
    ],
)
def test_what_is_missing_is_named(variables: dict[str, str], missing: str) -> None:
    with pytest.raises(SettingError, match=missing):
        stores(**variables)


def test_the_endpoint_belongs_to_the_name_and_the_secret_is_not_shown() -> None:
    first, following = stores(
        URL="s3://a%2Fb@b?endpoint=http://127.0.0.1:9000/&region=eu-west-1",
        SECRET_KEY="the-secret",
        NEXT_URL="gs://a@b",
        NEXT_SECRET_KEY="s",
    )
    assert (first.name, following.name) == ("s3://b at http://127.0.0.1:9000", "gs://b")
    assert (first.url, first.access_key, first.region) == ("s3://b", "a/b", "eu-west-1")
    assert "the-secret" not in repr(first)
