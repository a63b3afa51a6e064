"""What ends, expires or opens an account is in no backup."""

import json
import os
import subprocess
import sys

from django.apps import apps

from operations.backup.control import OMITTED, omitted_tables

# Fields of what works for a while, or by being known.
SHORT_LIVED = {"expires_at", "digest", "secret_hash", "lease_until", "token"}
# Reasons that they come back: what they prove or hold is what people have.
KEPT = {
    "twofactor.BackupCode": "a factor, used ones marked as used",
    "oauth.Domain": "a public DNS record",
    "accounts.KnownDevice": "gives no access, and saves each user a mail",
    "brain.Host": "as above",
    "brain.Node": "a worker's registration, whose earnings belong to its operator",
}


def test_every_model_that_could_open_an_account_is_void_or_kept_for_a_reason() -> None:
    found = {
        model._meta.label
        for model in apps.get_models(include_auto_created=True)
        if SHORT_LIVED & {field.name for field in model._meta.get_fields()}
    }
    assert found - OMITTED == set(KEPT)


def test_every_name_is_a_model() -> None:
    known = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    assert OMITTED - known == set()


def test_without_the_cache_its_rows_are_left_out_as_well() -> None:
    """Its tables may be there, with access keys: the installation had the cache before."""
    program = """
import json

import django

django.setup()
from operations.backup.control import omitted_tables

print(json.dumps(omitted_tables()))
"""
    here = os.environ | {"DJANGO_SETTINGS_MODULE": "platform_site.settings", "ZFEATURES": "none"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=here, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == omitted_tables()
