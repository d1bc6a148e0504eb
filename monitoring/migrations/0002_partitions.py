"""Readings by day, minutes by week, hours by quarter. Partitions for other times than now are made
by `monitoring.partitions`, after each `migrate` and every hour."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

TO_PARTITIONS = """
ALTER TABLE monitoring_reading RENAME TO monitoring_reading_whole;
ALTER INDEX monitoring_reading_pkey RENAME TO monitoring_reading_whole_pkey;
ALTER INDEX reading_by_time RENAME TO reading_whole_by_time;

CREATE TABLE monitoring_reading (
    layout_id bigint NOT NULL,
    at timestamptz NOT NULL,
    numbers double precision[] NOT NULL,
    PRIMARY KEY (layout_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX reading_by_time ON monitoring_reading
    USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
CREATE TABLE monitoring_reading_default PARTITION OF monitoring_reading DEFAULT
    WITH (toast_tuple_target = 8160);

DO $$
DECLARE day timestamp;
BEGIN
    FOR day IN SELECT generate_series(date_trunc('day', now() AT TIME ZONE 'UTC') - interval '2 days',
                                      date_trunc('day', now() AT TIME ZONE 'UTC') + interval '2 days',
                                      interval '1 day')
    LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF monitoring_reading FOR VALUES FROM (%L) TO (%L) WITH (toast_tuple_target = 8160)',
                       'monitoring_reading_' || to_char(day, 'YYYYMMDD'),
                       day AT TIME ZONE 'UTC', (day + interval '1 day') AT TIME ZONE 'UTC');
    END LOOP;
END $$;

INSERT INTO monitoring_reading (layout_id, at, numbers)
    SELECT layout_id, at, numbers FROM monitoring_reading_whole
    WHERE at >= now() - interval '2 days' AND at < now() + interval '1 day';
DROP TABLE monitoring_reading_whole;
"""

TO_ONE_TABLE = """
DELETE FROM monitoring_layout WHERE node_id IS NULL;
ALTER TABLE monitoring_reading RENAME TO monitoring_reading_parts;
ALTER INDEX monitoring_reading_pkey RENAME TO monitoring_reading_parts_pkey;
ALTER INDEX reading_by_time RENAME TO reading_parts_by_time;
CREATE TABLE monitoring_reading (
    layout_id bigint NOT NULL REFERENCES monitoring_layout (id) DEFERRABLE INITIALLY DEFERRED,
    at timestamptz NOT NULL,
    numbers double precision[] NOT NULL,
    PRIMARY KEY (layout_id, at)
);
CREATE INDEX reading_by_time ON monitoring_reading USING brin (at) WITH (pages_per_range = 32);
INSERT INTO monitoring_reading (layout_id, at, numbers)
    SELECT r.layout_id, r.at, r.numbers
    FROM monitoring_reading_parts r JOIN monitoring_layout l ON l.id = r.layout_id;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
DROP TABLE monitoring_reading_parts;
"""

ROLLED_UP = """
CREATE TABLE monitoring_{level} (
    layout_id bigint NOT NULL,
    at timestamptz NOT NULL,
    rows integer NOT NULL,
    covered double precision NOT NULL,
    n integer[] NOT NULL,
    low double precision[] NOT NULL,
    mean double precision[] NOT NULL,
    high double precision[] NOT NULL,
    last double precision[] NOT NULL,
    gain double precision[] NOT NULL,
    PRIMARY KEY (layout_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX {level}_by_time ON monitoring_{level}
    USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
CREATE TABLE monitoring_{level}_default PARTITION OF monitoring_{level} DEFAULT
    WITH (toast_tuple_target = 8160);
"""

SHAPES = """
UPDATE monitoring_layout SET shapes = coalesce((
    SELECT string_agg(CASE WHEN f ->> 0 LIKE '%\\_total' THEN 'c' ELSE 'g' END, '' ORDER BY i)
    FROM jsonb_array_elements(fields) WITH ORDINALITY AS e(f, i)
), '')
"""
"""What 0.3 knew of were gauges and counters."""


def rolled_up(name):
    """The model of a level, for Django's bookkeeping."""
    floats = django.contrib.postgres.fields.ArrayField(
        base_field=models.FloatField(null=True), size=None
    )
    counts = django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)
    return migrations.CreateModel(
        name=name,
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "layout_id", "at", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("at", models.DateTimeField()),
            ("rows", models.IntegerField()),
            ("covered", models.FloatField()),
            ("n", counts),
            *((column, floats.clone()) for column in ("low", "mean", "high", "last", "gain")),
            (
                "layout",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="monitoring.layout",
                ),
            ),
        ],
        options={
            "indexes": [
                django.contrib.postgres.indexes.BrinIndex(
                    fields=["at"],
                    name=f"{name.lower()}_by_time",
                    pages_per_range=32,
                    autosummarize=True,
                )
            ]
        },
    )


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0001_initial")]

    operations = [
        migrations.AddField(
            "layout", "shapes", models.TextField(default=""), preserve_default=False
        ),
        migrations.AddField("layout", "seen", models.DateTimeField(null=True)),
        migrations.RunSQL(SHAPES, migrations.RunSQL.noop),
        migrations.AlterField(
            "layout",
            "node",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="layouts",
                to="dashboard.node",
            ),
        ),
        migrations.RemoveConstraint("layout", "one_row_per_layout"),
        migrations.AddConstraint(
            "layout",
            models.UniqueConstraint(
                fields=("node", "subject", "digest"),
                name="one_row_per_layout",
                nulls_distinct=False,
            ),
        ),
        migrations.RunSQL(
            TO_PARTITIONS,
            TO_ONE_TABLE,
            state_operations=[
                migrations.AlterField(
                    "reading",
                    "layout",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="readings",
                        to="monitoring.layout",
                    ),
                ),
                migrations.RemoveIndex("reading", "reading_by_time"),
                migrations.AddIndex(
                    "reading",
                    django.contrib.postgres.indexes.BrinIndex(
                        fields=["at"],
                        name="reading_by_time",
                        pages_per_range=32,
                        autosummarize=True,
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            ROLLED_UP.format(level="minute"),
            "DROP TABLE monitoring_minute",
            state_operations=[rolled_up("Minute")],
        ),
        migrations.RunSQL(
            ROLLED_UP.format(level="hour"),
            "DROP TABLE monitoring_hour",
            state_operations=[rolled_up("Hour")],
        ),
        migrations.CreateModel(
            name="Progress",
            fields=[
                ("level", models.CharField(max_length=10, primary_key=True, serialize=False)),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Due",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("level", models.CharField(max_length=10)),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
