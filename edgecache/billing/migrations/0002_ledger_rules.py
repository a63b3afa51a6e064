"""What the database itself enforces: journals balance, records are append-only, first rates."""

from datetime import UTC, datetime

from django.db import migrations

APPEND_ONLY = (
    "billing_journal",
    "billing_entry",
    "billing_usageline",
    "billing_charge",
    "billing_adjustment",
)
FORWARD = """
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

-- The state of a line: its charge with all its adjustments.
CREATE VIEW billing_linestate AS
    SELECT c.line_id, l.organization_id, l.operator_id, c.share_ppm,
        c.granted_ucr + coalesce(a.granted, 0) AS granted,
        c.paid_ucr + coalesce(a.paid, 0) AS paid,
        c.unpaid_ucr + coalesce(a.unpaid, 0) AS unpaid,
        c.share_ucr + coalesce(a.share, 0) AS share,
        c.unpaid_ucr > 0 OR c.line_id IN
            (SELECT charge_id FROM billing_adjustment WHERE unpaid_ucr > 0) AS was_unpaid
    FROM billing_charge c JOIN billing_usageline l ON l.id = c.line_id
    LEFT JOIN LATERAL (SELECT sum(granted_ucr) AS granted, sum(paid_ucr) AS paid,
        sum(unpaid_ucr) AS unpaid, sum(share_ucr) AS share
        FROM billing_adjustment WHERE charge_id = c.line_id) a ON true;

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
BACKWARD = (
    "".join(f"DROP TRIGGER {table}_append_only ON {table};\n" for table in APPEND_ONLY)
    + """
DROP VIEW billing_linestate;
DROP TRIGGER billing_rate_kept ON billing_rate;
DROP TRIGGER billing_journal_balances ON billing_journal;
DROP TRIGGER billing_entry_added ON billing_entry;
DROP FUNCTION billing_rate_kept, billing_journal_balances, billing_entry_added, billing_refuse;
ALTER TABLE billing_journal DROP COLUMN posted_in;
"""
)
# The published rates, in µcr for one response, one byte, one byte-month.
FIRST_RATES = {"hit": 100, "miss": 1000, "egress": 9, "storage": 25}
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
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
