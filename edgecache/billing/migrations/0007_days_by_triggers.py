"""Triggers that keep the sums by day, and the sums of what was charged before."""

from django.db import migrations

# Grouped first, so that many lines of one batch change a row once; in one order for all writers.
CONSUMER = """
    INSERT INTO billing_consumerday AS d (organization_id, day, environment_pk, bucket_name,
        hits, misses, egress_bytes, storage_byte_hours, charged_ucr)
    SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date, l.environment_pk,
        l.bucket_name,
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'hit'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'miss'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'egress'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'storage'), 0),
        sum(c.charge_ucr)
    FROM {charges} c JOIN billing_usageline l ON l.id = c.line_id
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (organization_id, day, environment_pk, bucket_name) DO UPDATE SET
        hits = d.hits + excluded.hits, misses = d.misses + excluded.misses,
        egress_bytes = d.egress_bytes + excluded.egress_bytes,
        storage_byte_hours = d.storage_byte_hours + excluded.storage_byte_hours,
        charged_ucr = d.charged_ucr + excluded.charged_ucr;
"""
OPERATOR = """
    INSERT INTO billing_operatorday AS d (operator_id, day, node_id, hits, egress_bytes, lines,
        paid_ucr, share_ucr)
    SELECT l.operator_id, (l.used_at AT TIME ZONE 'UTC')::date, l.node_id,
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'hit'), 0),
        coalesce(sum(l.quantity) FILTER (WHERE l.kind = 'egress'), 0),
        count(*) FILTER (WHERE c.share_ppm > 0),
        coalesce(sum(c.paid_ucr) FILTER (WHERE c.share_ppm > 0), 0), sum(c.share_ucr)
    FROM {charges} c JOIN billing_usageline l ON l.id = c.line_id
    WHERE l.operator_id IS NOT NULL AND l.kind IN ('hit', 'egress')
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (operator_id, day, node_id) DO UPDATE SET
        hits = d.hits + excluded.hits, egress_bytes = d.egress_bytes + excluded.egress_bytes,
        lines = d.lines + excluded.lines, paid_ucr = d.paid_ucr + excluded.paid_ucr,
        share_ucr = d.share_ucr + excluded.share_ucr;
"""
ADJUST = """
    UPDATE billing_consumerday d SET charged_ucr = d.charged_ucr + sums.amount
    FROM (SELECT l.organization_id, (l.used_at AT TIME ZONE 'UTC')::date AS day,
            l.environment_pk, l.bucket_name,
            sum(a.granted_ucr + a.paid_ucr + a.unpaid_ucr) AS amount
        FROM {adjustments} a JOIN billing_usageline l ON l.id = a.charge_id
        GROUP BY 1, 2, 3, 4) sums
    WHERE (d.organization_id, d.day, d.environment_pk, d.bucket_name)
        = (sums.organization_id, sums.day, sums.environment_pk, sums.bucket_name)
        AND sums.amount <> 0;
    UPDATE billing_operatorday d
    SET paid_ucr = d.paid_ucr + sums.paid, share_ucr = d.share_ucr + sums.share
    FROM (SELECT l.operator_id, (l.used_at AT TIME ZONE 'UTC')::date AS day, l.node_id,
            sum(a.paid_ucr) AS paid, sum(a.share_ucr) AS share
        FROM {adjustments} a JOIN billing_usageline l ON l.id = a.charge_id
        JOIN billing_charge c ON c.line_id = a.charge_id AND c.share_ppm > 0
        GROUP BY 1, 2, 3) sums
    WHERE (d.operator_id, d.day) = (sums.operator_id, sums.day)
        AND d.node_id IS NOT DISTINCT FROM sums.node_id;
"""
FORWARD = (
    CONSUMER.format(charges="billing_charge")
    + OPERATOR.format(charges="billing_charge")
    + ADJUST.format(adjustments="billing_adjustment")
    + "CREATE FUNCTION billing_charges_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    + CONSUMER.format(charges="added")
    + OPERATOR.format(charges="added")
    + "RETURN NULL; END $$;"
    + "CREATE FUNCTION billing_adjustments_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    + ADJUST.format(adjustments="added")
    + """RETURN NULL; END $$;
CREATE TRIGGER billing_charges_added AFTER INSERT ON billing_charge
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_charges_added();
CREATE TRIGGER billing_adjustments_added AFTER INSERT ON billing_adjustment
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_adjustments_added();

DROP VIEW billing_linestate;
-- The state of a line: its charge with all its adjustments.
CREATE VIEW billing_linestate AS
    SELECT c.line_id, l.organization_id, l.operator_id, c.share_ppm,
        c.granted_ucr + coalesce(a.granted, 0) AS granted,
        c.paid_ucr + coalesce(a.paid, 0) AS paid,
        c.unpaid_ucr + coalesce(a.unpaid, 0) AS unpaid,
        c.share_ucr + coalesce(a.share, 0) AS share
    FROM billing_charge c JOIN billing_usageline l ON l.id = c.line_id
    LEFT JOIN LATERAL (SELECT sum(granted_ucr) AS granted, sum(paid_ucr) AS paid,
        sum(unpaid_ucr) AS unpaid, sum(share_ucr) AS share
        FROM billing_adjustment WHERE charge_id = c.line_id) a ON true;
"""
)
BACKWARD = """
DROP TRIGGER billing_charges_added ON billing_charge;
DROP TRIGGER billing_adjustments_added ON billing_adjustment;
DROP FUNCTION billing_charges_added, billing_adjustments_added;
DELETE FROM billing_consumerday;
DELETE FROM billing_operatorday;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0006_days_and_spend_caps")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
