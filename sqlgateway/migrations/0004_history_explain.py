"""The history tells runs, plans and measurements apart."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sqlgateway", "0003_limits_in_one_column")]
    operations = [
        migrations.AddField(
            "sqlrecord",
            "explain",
            models.CharField(max_length=8, blank=True, default="", db_default=""),
        ),
    ]
