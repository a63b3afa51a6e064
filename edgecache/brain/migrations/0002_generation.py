"""One sequence for the generations of all objects and purges."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("brain", "0001_initial")]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE brain_generation", "DROP SEQUENCE brain_generation")
    ]
