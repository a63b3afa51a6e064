"""What the database itself enforces and sums up, and the first rates.

Journals balance, records are append-only, and triggers keep the sums by day.
"""

from datetime import UTC, datetime

from django.db import migrations

APPEND_ONLY = (
    "billing_journal",
    "billing_entry",
    "billing_usageline",
    "billing_charge",
    "billing_adjustment",
)
RULES = """
CREATE FUNCTION billing_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;

-- Entries come with their journal: none is added to a journal of an earlier transaction.
ALTER TABLE billing_journal ADD COLUMN posted_in xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE FUNCTION billing_entry_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM added JOIN billing_journal j ON j.id = added.journal_id
               WHERE j.posted_in <> pg_current_xact_id()) THEN
        RAISE EXCEPTION 'a posted journal gets no more entries'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE billing_account a SET balance_ucr = a.balance_ucr + sums.amount
    FROM (SELECT account_id, sum(amount_ucr) AS amount FROM added GROUP BY account_id) sums
    WHERE a.id = sums.account_id;
    RETURN NULL;
END $$;
CREATE TRIGGER billing_entry_added AFTER INSERT ON billing_entry
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_entry_added();

CREATE FUNCTION billing_journal_balances() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE total numeric;
BEGIN
    SELECT coalesce(sum(amount_ucr), 0) INTO total
    FROM billing_entry WHERE journal_id = NEW.id;
    IF total <> 0 THEN
        RAISE EXCEPTION 'journal % does not balance: % µcr', NEW.key, total
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER billing_journal_balances AFTER INSERT ON billing_journal
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_journal_balances();

CREATE FUNCTION billing_rate_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.begins_at <= now() THEN
        RAISE EXCEPTION 'a rate that has begun is kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER billing_rate_kept BEFORE UPDATE OR DELETE ON billing_rate
    FOR EACH ROW EXECUTE FUNCTION billing_rate_kept();
""" + "".join(
    f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}"
    " FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse();\n"
    for table in APPEND_ONLY
)
# What is append-only cannot be emptied either.
NOT_EMPTIED = "".join(
    f"CREATE TRIGGER {table}_not_emptied BEFORE TRUNCATE ON {table}"
    " FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse();\n"
    for table in (*APPEND_ONLY, "billing_rate")
)
LINE_STATES = """
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
# Grouped first, so that many lines of one batch change a row once; in one order for all writers.
# The lines of a charge lie close together. With both bounds in the plan it reads them in one scan;
# each kind of sum alone looked every line up, and the one of SQL read an index of all lines.
CHARGES = """
CREATE FUNCTION billing_charges_added() RETURNS trigger LANGUAGE plpgsql AS $$
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
# A line of SQL has no bucket, as lines of buckets that were deleted have none.
ADJUSTMENTS = """
CREATE FUNCTION billing_adjustments_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
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
TRIGGERS = """
CREATE TRIGGER billing_charges_added AFTER INSERT ON billing_charge
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_charges_added();
CREATE TRIGGER billing_adjustments_added AFTER INSERT ON billing_adjustment
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION billing_adjustments_added();
"""
# The published rates, in µcr for one response, one byte, one byte-month. No price is asked for SQL
# yet.
FIRST_RATES = {
    "hit": 100,
    "miss": 1000,
    "egress": 9,
    "storage": 25,
    "sql_statement": 0,
    "sql_time": 0,
    "sql_egress": 0,
    "sql_storage": 0,
}
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def add_rates(apps, schema_editor):
    rate = apps.get_model("billing", "Rate")
    rate.objects.bulk_create(
        rate(kind=kind, rate_ucr=value, begins_at=SINCE) for kind, value in FIRST_RATES.items()
    )


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]

    operations = [
        migrations.RunPython(add_rates, migrations.RunPython.noop),
        migrations.RunSQL(RULES + NOT_EMPTIED + LINE_STATES + CHARGES + ADJUSTMENTS + TRIGGERS),
    ]
