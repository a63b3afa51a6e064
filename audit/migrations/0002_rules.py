"""The trail is append-only; no role can delete its last thirty days."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION audit_auditevent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_auditevent_append_only BEFORE UPDATE ON audit_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION audit_auditevent_refuse();
CREATE FUNCTION audit_auditevent_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.at > now() - interval '30 days' THEN
        RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER audit_auditevent_keep BEFORE DELETE ON audit_auditevent
    FOR EACH ROW EXECUTE FUNCTION audit_auditevent_keep();
"""

BACKWARD = """
DROP TRIGGER audit_auditevent_keep ON audit_auditevent;
DROP FUNCTION audit_auditevent_keep();
DROP TRIGGER audit_auditevent_append_only ON audit_auditevent;
DROP FUNCTION audit_auditevent_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
