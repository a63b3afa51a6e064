from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brain', '0007_object_versions'),
    ]

    operations = [
        migrations.AddField(
            model_name='bucket',
            name='lifecycle',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='bucket',
            name='lifecycle_done',
            field=models.DateField(null=True),
        ),
    ]
