"""Count API requests by organization and hour."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('environments', '0003_deletion'),
    ]

    operations = [
        migrations.CreateModel(
            name='RequestHour',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField(db_index=True)),
                ('requests', models.BigIntegerField()),
                ('refused', models.BigIntegerField()),
                ('failed', models.BigIntegerField()),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='environments.organization')),
            ],
            options={
                'abstract': False,
                'default_manager_name': 'unscoped',
                'base_manager_name': 'unscoped',
                'constraints': [models.UniqueConstraint(fields=('organization', 'hour'), name='request_hour_unique')],
            },
            managers=[
                ('unscoped', django.db.models.manager.Manager()),
            ],
        ),
    ]
