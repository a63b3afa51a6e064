from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("sqlgateway", "0008_statement_quota"),
    ]

    operations = [
        migrations.AddField(
            model_name="organizationquota",
            name="timeout_ms",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
