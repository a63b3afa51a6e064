from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("environments", "0001_initial"),
        ("sqlgateway", "0010_request_quotas"),
    ]

    operations = [
        migrations.CreateModel(
            name="OrganizationLimits",
            fields=[],
            options={
                "verbose_name": "organization with its limits",
                "verbose_name_plural": "organizations with their limits",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("environments.organization",),
        ),
    ]
