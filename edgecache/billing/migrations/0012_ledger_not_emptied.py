"""What is append-only cannot be emptied either."""

from django.db import migrations

TABLES = (
    "billing_journal",
    "billing_entry",
    "billing_usageline",
    "billing_charge",
    "billing_adjustment",
    "billing_rate",
)
FORWARD = "".join(
    f"CREATE TRIGGER {table}_not_emptied BEFORE TRUNCATE ON {table}"
    " FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse();\n"
    for table in TABLES
)
BACKWARD = "".join(f"DROP TRIGGER {table}_not_emptied ON {table};\n" for table in TABLES)


class Migration(migrations.Migration):
    dependencies = [("billing", "0011_connected_account")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
