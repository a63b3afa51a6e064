"""Debts and paid lines are found by organization; sums by day are made in one pass.

The columns repeat what the usage lines say. Setting them in existing rows is the one change that
append-only tables ever get.
"""

from django.db import migrations, models

FILL = """
ALTER TABLE {table} ADD COLUMN organization_id bigint;
ALTER TABLE {table} DISABLE TRIGGER USER;
UPDATE {table} c SET organization_id = l.organization_id
    FROM billing_usageline l WHERE l.id = c.{line};
ALTER TABLE {table} ENABLE TRIGGER USER;
ALTER TABLE {table} ALTER COLUMN organization_id SET NOT NULL;
"""
# The lines of a charge lie close together. With both bounds in the plan it reads them in one scan;
# each kind of sum alone looked every line up, and the one of SQL read an index of all lines.
CHARGES = """
CREATE OR REPLACE FUNCTION billing_charges_added() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    least_id bigint;
    greatest_id bigint;
    expected bigint;
    known bigint;
BEGIN
    SELECT min(line_id), max(line_id), count(*) INTO least_id, greatest_id, expected FROM added;
    WITH charged AS MATERIALIZED (
        SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date AS day, l.environment_pk,
            l.bucket_name, l.operator_id, l.node_id, l.kind, l.quantity,
            c.charge_ucr, c.paid_ucr, c.share_ppm, c.share_ucr
        FROM added c JOIN billing_usageline l
            ON l.id = c.line_id AND l.organization_id = c.organization_id
        WHERE l.id BETWEEN least_id AND greatest_id),
    of_cache AS (
        INSERT INTO billing_consumerday AS d (organization_id, day, environment_pk, bucket_name,
            hits, misses, egress_bytes, storage_byte_hours, charged_ucr)
        SELECT organization_id, day, environment_pk, bucket_name,
            coalesce(sum(quantity) FILTER (WHERE kind = 'hit'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'miss'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'egress'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'storage'), 0),
            sum(charge_ucr)
        FROM charged WHERE kind IN ('hit', 'miss', 'egress', 'storage')
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (organization_id, day, environment_pk, bucket_name) DO UPDATE SET
            hits = d.hits + excluded.hits, misses = d.misses + excluded.misses,
            egress_bytes = d.egress_bytes + excluded.egress_bytes,
            storage_byte_hours = d.storage_byte_hours + excluded.storage_byte_hours,
            charged_ucr = d.charged_ucr + excluded.charged_ucr),
    of_sql AS (
        INSERT INTO billing_sqlday AS d (organization_id, day, environment_pk, statements,
            milliseconds, egress_bytes, storage_byte_hours, charged_ucr)
        SELECT organization_id, day, environment_pk,
            coalesce(sum(quantity) FILTER (WHERE kind = 'sql_statement'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'sql_time'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'sql_egress'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'sql_storage'), 0),
            sum(charge_ucr)
        FROM charged WHERE kind IN ('sql_statement', 'sql_time', 'sql_egress', 'sql_storage')
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (organization_id, day, environment_pk) DO UPDATE SET
            statements = d.statements + excluded.statements,
            milliseconds = d.milliseconds + excluded.milliseconds,
            egress_bytes = d.egress_bytes + excluded.egress_bytes,
            storage_byte_hours = d.storage_byte_hours + excluded.storage_byte_hours,
            charged_ucr = d.charged_ucr + excluded.charged_ucr),
    of_operators AS (
        INSERT INTO billing_operatorday AS d (operator_id, day, node_id, hits, egress_bytes, lines,
            paid_ucr, share_ucr)
        SELECT operator_id, day, node_id,
            coalesce(sum(quantity) FILTER (WHERE kind = 'hit'), 0),
            coalesce(sum(quantity) FILTER (WHERE kind = 'egress'), 0),
            count(*) FILTER (WHERE share_ppm > 0),
            coalesce(sum(paid_ucr) FILTER (WHERE share_ppm > 0), 0), sum(share_ucr)
        FROM charged WHERE operator_id IS NOT NULL AND kind IN ('hit', 'egress')
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (operator_id, day, node_id) DO UPDATE SET
            hits = d.hits + excluded.hits, egress_bytes = d.egress_bytes + excluded.egress_bytes,
            lines = d.lines + excluded.lines, paid_ucr = d.paid_ucr + excluded.paid_ucr,
            share_ucr = d.share_ucr + excluded.share_ucr)
    SELECT count(*) INTO known FROM charged;
    IF known <> expected THEN
        RAISE EXCEPTION 'a charge has no line of its organization'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0013_notified_at")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    FILL.format(table=table, line=line),
                    f"ALTER TABLE {table} DROP COLUMN organization_id;",
                )
                for table, line in (
                    ("billing_charge", "line_id"),
                    ("billing_adjustment", "charge_id"),
                )
            ],
            state_operations=[
                migrations.AddField(
                    model, "organization_id", models.BigIntegerField(), preserve_default=False
                )
                for model in ("charge", "adjustment")
            ],
        ),
        migrations.RunSQL(CHARGES, migrations.RunSQL.noop),
        migrations.RemoveIndex("charge", "charge_unpaid"),
        *(
            migrations.AddIndex(
                model,
                models.Index(
                    fields=["organization_id", line],
                    condition=models.Q((f"{side}_ucr__gt", 0)),
                    name=f"{model}_{side}",
                ),
            )
            for model, line in (("charge", "line"), ("adjustment", "charge"))
            for side in ("unpaid", "paid")
        ),
    ]
