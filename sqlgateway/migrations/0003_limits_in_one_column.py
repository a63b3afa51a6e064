"""An organization's own limits are one JSON column."""

from typing import Final

from django.db import migrations, models

NAMES: Final = (
    "disk_bytes",
    "environments",
    "statements",
    "timeout_ms",
    "max_rows",
    "max_bytes",
    "body_bytes",
    "import_bytes",
)
COPY: Final = "UPDATE sqlgateway_organizationquota SET limits = jsonb_strip_nulls({})".format(
    "jsonb_build_object({})".format(", ".join(f"'{name}', {name}" for name in NAMES))
)


class Migration(migrations.Migration):
    dependencies = [("sqlgateway", "0002_scope")]
    operations = [
        migrations.AddField(
            "organizationquota", "limits", models.JSONField(default=dict, db_default={})
        ),
        migrations.RunSQL(COPY, migrations.RunSQL.noop, elidable=True),
        # The columns stay for this release, since the code of before reads and writes them.
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("organizationquota", name) for name in NAMES]
        ),
    ]
