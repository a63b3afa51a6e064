from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("sqlgateway", "0009_timeout_quota"),
    ]

    operations = [
        migrations.AddField(
            model_name="organizationquota",
            name="max_rows",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="organizationquota",
            name="max_bytes",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="organizationquota",
            name="body_bytes",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="organizationquota",
            name="import_bytes",
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
    ]
