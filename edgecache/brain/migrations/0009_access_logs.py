from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brain', '0008_bucket_lifecycle'),
    ]

    operations = [
        migrations.AddField(
            model_name='bucket',
            name='log_bucket',
            field=models.TextField(blank=True, db_default=''),
        ),
        migrations.AddField(
            model_name='bucket',
            name='log_prefix',
            field=models.TextField(blank=True, db_default=''),
        ),
    ]
