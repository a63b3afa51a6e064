"""Old events may go, by the retention; no role can delete the last thirty days of the trail."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION accounts_auditevent_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.at > now() - interval '30 days' THEN
        RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN OLD;
END $$;
DROP TRIGGER accounts_auditevent_append_only ON accounts_auditevent;
CREATE TRIGGER accounts_auditevent_append_only BEFORE UPDATE ON accounts_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_auditevent_refuse();
CREATE TRIGGER accounts_auditevent_keep BEFORE DELETE ON accounts_auditevent
    FOR EACH ROW EXECUTE FUNCTION accounts_auditevent_keep();
"""

BACKWARD = """
DROP TRIGGER accounts_auditevent_keep ON accounts_auditevent;
DROP FUNCTION accounts_auditevent_keep();
DROP TRIGGER accounts_auditevent_append_only ON accounts_auditevent;
CREATE TRIGGER accounts_auditevent_append_only BEFORE UPDATE OR DELETE ON accounts_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_auditevent_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_external_sign_in")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
