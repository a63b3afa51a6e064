"""Sums of SQL by day, kept by the same triggers; rates of zero: no price is asked for yet."""

from datetime import UTC, datetime

from django.db import migrations

KINDS = ("sql_statement", "sql_time", "sql_egress", "sql_storage")
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
CHARGES = """
CREATE OR REPLACE FUNCTION billing_charges_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO billing_consumerday AS d (organization_id, day, environment_pk, bucket_name,
        hits, misses, egress_bytes, storage_byte_hours, charged_ucr)
    SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date, l.environment_pk,
        l.bucket_name,
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'hit'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'miss'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'egress'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'storage'), 0),
        sum(c.charge_ucr)
    FROM added c JOIN billing_usageline l ON l.id = c.line_id
    WHERE l.kind IN ('hit', 'miss', 'egress', 'storage')
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (organization_id, day, environment_pk, bucket_name) DO UPDATE SET
        hits = d.hits + excluded.hits, misses = d.misses + excluded.misses,
        egress_bytes = d.egress_bytes + excluded.egress_bytes,
        storage_byte_hours = d.storage_byte_hours + excluded.storage_byte_hours,
        charged_ucr = d.charged_ucr + excluded.charged_ucr;
    INSERT INTO billing_sqlday AS d (organization_id, day, environment_pk, statements,
        milliseconds, egress_bytes, storage_byte_hours, charged_ucr)
    SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date, l.environment_pk,
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'sql_statement'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'sql_time'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'sql_egress'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'sql_storage'), 0),
        sum(c.charge_ucr)
    FROM added c JOIN billing_usageline l ON l.id = c.line_id
    WHERE l.kind IN ('sql_statement', 'sql_time', 'sql_egress', 'sql_storage')
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (organization_id, day, environment_pk) DO UPDATE SET
        statements = d.statements + excluded.statements,
        milliseconds = d.milliseconds + excluded.milliseconds,
        egress_bytes = d.egress_bytes + excluded.egress_bytes,
        storage_byte_hours = d.storage_byte_hours + excluded.storage_byte_hours,
        charged_ucr = d.charged_ucr + excluded.charged_ucr;
    INSERT INTO billing_operatorday AS d (operator_id, day, node_id, hits, egress_bytes, lines,
        paid_ucr, share_ucr)
    SELECT l.operator_id, (l.used_at AT TIME ZONE 'UTC')::date, l.node_id,
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'hit'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'egress'), 0),
        count(*) FILTER (WHERE c.share_ppm > 0),
        coalesce(sum(c.paid_ucr) FILTER (WHERE c.share_ppm > 0), 0), sum(c.share_ucr)
    FROM added c JOIN billing_usageline l ON l.id = c.line_id
    WHERE l.operator_id IS NOT NULL AND l.kind IN ('hit', 'egress')
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (operator_id, day, node_id) DO UPDATE SET
        hits = d.hits + excluded.hits, egress_bytes = d.egress_bytes + excluded.egress_bytes,
        lines = d.lines + excluded.lines, paid_ucr = d.paid_ucr + excluded.paid_ucr,
        share_ucr = d.share_ucr + excluded.share_ucr;
    RETURN NULL;
END $$;
"""
# A line of SQL has no bucket, as lines of buckets that were deleted have none.
ADJUSTMENTS = """
CREATE OR REPLACE FUNCTION billing_adjustments_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE billing_consumerday d SET charged_ucr = d.charged_ucr + sums.amount
    FROM (SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date AS day,
            l.environment_pk, l.bucket_name,
            sum(a.granted_ucr + a.paid_ucr + a.unpaid_ucr) AS amount
        FROM added a JOIN billing_usageline l ON l.id = a.charge_id
        WHERE l.kind IN ('hit', 'miss', 'egress', 'storage')
        GROUP BY 1, 2, 3, 4) sums
    WHERE (d.organization_id, d.day, d.environment_pk, d.bucket_name)
        = (sums.organization_id, sums.day, sums.environment_pk, sums.bucket_name)
        AND sums.amount <> 0;
    UPDATE billing_sqlday d SET charged_ucr = d.charged_ucr + sums.amount
    FROM (SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date AS day,
            l.environment_pk, sum(a.granted_ucr + a.paid_ucr + a.unpaid_ucr) AS amount
        FROM added a JOIN billing_usageline l ON l.id = a.charge_id
        WHERE l.kind IN ('sql_statement', 'sql_time', 'sql_egress', 'sql_storage')
        GROUP BY 1, 2, 3) sums
    WHERE (d.organization_id, d.day, d.environment_pk)
        = (sums.organization_id, sums.day, sums.environment_pk) AND sums.amount <> 0;
    UPDATE billing_operatorday d
    SET paid_ucr = d.paid_ucr + sums.paid, share_ucr = d.share_ucr + sums.share
    FROM (SELECT l.operator_id, (l.used_at AT TIME ZONE 'UTC')::date AS day, l.node_id,
            sum(a.paid_ucr) AS paid, sum(a.share_ucr) AS share
        FROM added a JOIN billing_usageline l ON l.id = a.charge_id
        JOIN billing_charge c ON c.line_id = a.charge_id AND c.share_ppm > 0
        GROUP BY 1, 2, 3) sums
    WHERE (d.operator_id, d.day) = (sums.operator_id, sums.day)
        AND d.node_id IS NOT DISTINCT FROM sums.node_id;
    RETURN NULL;
END $$;
"""


def add_rates(apps, schema_editor):
    rate = apps.get_model("billing", "Rate")
    rate.objects.bulk_create(rate(kind=kind, rate_ucr=0, begins_at=SINCE) for kind in KINDS)


class Migration(migrations.Migration):
    dependencies = [("billing", "0008_sql")]

    operations = [
        migrations.RunPython(add_rates, migrations.RunPython.noop),
        migrations.RunSQL(CHARGES + ADJUSTMENTS),
    ]
