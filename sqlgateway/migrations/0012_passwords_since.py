from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("sqlgateway", "0011_organization_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="database",
            name="passwords_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
