"""A quarantine is known by its node and its beginning: a restored brain gives numbers again."""

from django.db import migrations, models

# The same one under two numbers is not expected; both may have been decided about.
APART = """
UPDATE billing_quarantine q SET began_at = q.began_at + same.number * interval '1 microsecond'
FROM (SELECT id, row_number() OVER (PARTITION BY node_id, began_at ORDER BY id) - 1 AS number
    FROM billing_quarantine) same
WHERE same.id = q.id AND same.number > 0
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0016_ledger_rules")]

    operations = [
        migrations.RunSQL(APART, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="quarantine", name="event", field=models.BigIntegerField()
        ),
        migrations.AddConstraint(
            model_name="quarantine",
            constraint=models.UniqueConstraint(
                fields=["node_id", "began_at"], name="quarantine_once"
            ),
        ),
    ]
