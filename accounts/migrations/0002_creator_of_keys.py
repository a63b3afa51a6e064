"""The creator of an API key has the field's usual name."""

from typing import Any, Final

from django.db import migrations

REASONS: Final = {"maker_demoted": "creator_demoted", "maker_disabled": "creator_disabled"}


def rename_reasons(apps: Any, schema_editor: Any) -> None:
    keys = apps.get_model("accounts", "ApiKey")._base_manager
    for old, new in REASONS.items():
        keys.filter(revoke_reason=old).update(revoke_reason=new)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [
        migrations.RenameField("apikey", "maker", "creator"),
        migrations.RunPython(rename_reasons, migrations.RunPython.noop, elidable=True),
    ]
