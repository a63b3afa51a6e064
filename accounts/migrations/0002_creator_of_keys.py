"""The creator of an API key has the field's usual name."""

from typing import Any, Final

from django.conf import settings
from django.db import migrations, models

REASONS: Final = {"maker_demoted": "creator_demoted", "maker_disabled": "creator_disabled"}


def rename_reasons(apps: Any, schema_editor: Any) -> None:
    keys = apps.get_model("accounts", "ApiKey")._base_manager
    for old, new in REASONS.items():
        keys.filter(revoke_reason=old).update(revoke_reason=new)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [
        # The column keeps its name, which the code of before reads during an upgrade.
        migrations.AlterField(
            "apikey",
            "maker",
            models.ForeignKey(
                settings.AUTH_USER_MODEL,
                db_column="maker_id",
                on_delete=models.CASCADE,
                related_name="+",
            ),
        ),
        migrations.RenameField("apikey", "maker", "creator"),
        migrations.RunPython(rename_reasons, migrations.RunPython.noop, elidable=True),
    ]
