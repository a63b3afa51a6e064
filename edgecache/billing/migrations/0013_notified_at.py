"""A plainer name: ``notified_at``."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("billing", "0012_ledger_not_emptied")]

    operations = [migrations.RenameField("servicestate", "told_at", "notified_at")]
