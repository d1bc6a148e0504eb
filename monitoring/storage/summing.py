"""The arithmetic of the roll-ups, in SQL: what one bucket's readings come to.

Within one layout a number is there always or never, because an absence and its reason are part of
the layout. So most growth is the step from one row to the next of the same layout; only where a
subject changed its layout, the reading before is looked for by its series, source and kind: another
meter, or an estimate in its place, began to count at another time, and the step from one to the
other is nobody's growth.
"""

from monitoring.storage.binned import energy

LOOK_BACK = 30
"""Seconds before a bucket in which the reading may lie that its first one is compared with."""
MOST_INTERVALS = 3
"""A longer gap's growth is not counted: nobody knows when it was."""

SMALLEST = "1e-100"
"""A mean nearer to nothing is nothing: its parts could not be told from it."""

COLUMNS = "layout_id, at, rows, covered, n, low, mean, high, last, gain"

MINUTES = f"""
WITH taken AS MATERIALIZED (
    SELECT layout_id, at, numbers FROM monitoring_reading
    WHERE at >= %(since)s - interval '{LOOK_BACK} seconds' AND at < %(until)s
      AND (%(layouts)s::bigint[] IS NULL OR layout_id = ANY(%(layouts)s))
), layout AS MATERIALIZED (
    SELECT id, fields, shapes, min(id) OVER (PARTITION BY node_id, subject) AS family
    FROM monitoring_layout WHERE id IN (SELECT layout_id FROM taken)
), stepped AS MATERIALIZED (
    SELECT t.layout_id, l.family, t.at, t.numbers, date_bin('1 minute', t.at, 'epoch') AS bucket,
        lag(t.layout_id) OVER w AS old_layout, lag(t.numbers) OVER w AS old_numbers,
        extract(epoch FROM t.at - lag(t.at) OVER w)::float8 AS passed
    FROM taken t JOIN layout l ON l.id = t.layout_id
    WINDOW w AS (PARTITION BY l.family ORDER BY t.at, t.layout_id)
), pace AS MATERIALIZED (
    SELECT family, bucket, {MOST_INTERVALS} * least(10, greatest(1, min(passed))) AS most
    FROM stepped WHERE at >= %(since)s GROUP BY family, bucket
), reading AS MATERIALIZED (
    SELECT s.layout_id, s.family, s.bucket, s.at, s.numbers, p.most,
        CASE WHEN s.passed <= p.most THEN s.passed END AS passed,
        CASE WHEN s.passed <= p.most AND s.old_layout = s.layout_id
            THEN s.old_numbers END AS before,
        s.old_layout <> s.layout_id AS crossed
    FROM stepped s JOIN pace p ON p.family = s.family AND p.bucket = s.bucket
    WHERE s.at >= %(since)s
), element AS MATERIALIZED (
    SELECT layout_id, bucket, i, count(v)::int AS n, min(v) AS low, avg(v) AS mean,
        max(v) AS high, sum(CASE WHEN v >= old THEN v - old WHEN old IS NOT NULL THEN v END) AS gain
    FROM (
        SELECT layout_id, bucket, generate_subscripts(numbers, 1) AS i, unnest(numbers) AS v,
            unnest(before) AS old
        FROM reading
    ) AS number
    GROUP BY layout_id, bucket, i
), loud AS (
    SELECT r.layout_id, r.bucket, u.i, 10 * log(sum({energy("u.v")}) / count(u.v)) AS mean
    FROM reading r JOIN layout l ON l.id = r.layout_id AND l.shapes LIKE '%%l%%'
        CROSS JOIN LATERAL unnest(r.numbers) WITH ORDINALITY AS u (v, i)
    WHERE substr(l.shapes, u.i::int, 1) = 'l'
    GROUP BY r.layout_id, r.bucket, u.i
), growing AS MATERIALIZED (
    SELECT l.id, l.family, f.i::int AS i, f.field ->> 0 AS metric, f.field ->> 2 AS source,
        f.field ->> 3 AS kind, f.field ->> 4 AS scope, f.field ->> 6 AS label
    FROM layout l CROSS JOIN LATERAL jsonb_array_elements(l.fields) WITH ORDINALITY AS f (field, i)
    WHERE l.family IN (SELECT family FROM reading WHERE crossed)
      AND substr(l.shapes, f.i::int, 1) IN ('c', 'b')
), crossing AS (
    SELECT DISTINCT ON (r.layout_id, r.at, new.i) r.layout_id, r.bucket, new.i,
        r.numbers[new.i] AS v, s.numbers[old.i] AS old
    FROM reading r
    JOIN growing new ON new.id = r.layout_id
    JOIN stepped s ON s.family = r.family AND s.at < r.at
        AND s.at >= r.at - make_interval(secs => r.most)
    JOIN growing old ON old.id = s.layout_id AND old.metric = new.metric
        AND old.source = new.source AND old.kind = new.kind
        AND old.scope = new.scope AND old.label = new.label
    WHERE r.crossed AND r.numbers[new.i] IS NOT NULL AND s.numbers[old.i] IS NOT NULL
    ORDER BY r.layout_id, r.at, new.i, s.at DESC, s.layout_id DESC
), crossed AS (
    SELECT layout_id, bucket, i, sum(CASE WHEN v >= old THEN v - old ELSE v END) AS gain
    FROM crossing GROUP BY layout_id, bucket, i
), whole AS (
    SELECT layout_id, bucket, count(*)::int AS rows, coalesce(sum(passed), 0) AS covered,
        max(at) AS ended
    FROM reading GROUP BY layout_id, bucket
)
SELECT e.layout_id, e.bucket, w.rows, w.covered, array_agg(e.n ORDER BY e.i),
    array_agg(CASE WHEN s.shape <> 'b' THEN e.low END ORDER BY e.i),
    array_agg(CASE WHEN s.shape = 'b' THEN NULL WHEN s.shape = 'l' THEN o.mean
        WHEN abs(e.mean) < {SMALLEST} THEN 0 ELSE e.mean END ORDER BY e.i),
    array_agg(CASE WHEN s.shape <> 'b' THEN e.high END ORDER BY e.i),
    min(r.numbers),
    array_agg(CASE WHEN s.shape IN ('c', 'b') THEN
        CASE WHEN c.gain IS NULL THEN e.gain ELSE c.gain + coalesce(e.gain, 0) END END ORDER BY e.i)
FROM element e
JOIN layout l ON l.id = e.layout_id
CROSS JOIN LATERAL (SELECT substr(l.shapes, e.i::int, 1) AS shape) s
JOIN whole w ON w.layout_id = e.layout_id AND w.bucket = e.bucket
JOIN reading r ON r.layout_id = w.layout_id AND r.at = w.ended
LEFT JOIN loud o ON o.layout_id = e.layout_id AND o.bucket = e.bucket AND o.i = e.i
LEFT JOIN crossed c ON c.layout_id = e.layout_id AND c.bucket = e.bucket AND c.i = e.i
GROUP BY e.layout_id, e.bucket, w.rows, w.covered
"""
"""From readings; `since` is the beginning of a minute. `layouts` may be null: all."""

HOURS = f"""
WITH taken AS MATERIALIZED (
    SELECT m.*, date_bin('1 hour', m.at, 'epoch') AS bucket
    FROM monitoring_minute m JOIN monitoring_layout l ON l.id = m.layout_id
    WHERE m.at >= %(since)s AND m.at < %(until)s
), special AS (
    SELECT id AS layout_id, i, substr(shapes, i, 1) AS shape
    FROM monitoring_layout CROSS JOIN LATERAL generate_series(1, length(shapes)) AS i
    WHERE shapes ~ '[lnx]' AND substr(shapes, i, 1) IN ('l', 'n', 'x')
), element AS (
    SELECT layout_id, bucket, i, sum(n)::int AS n, min(low) AS low,
        CASE shape WHEN 'n' THEN min(low) WHEN 'x' THEN max(high)
            WHEN 'l' THEN 10 * log(sum(n * loudness) / nullif(sum(n), 0))
            ELSE sum(n * mean) / nullif(sum(n), 0) END AS mean,
        max(high) AS high, sum(gain) AS gain
    FROM (
        SELECT number.*, special.shape,
            CASE WHEN special.shape = 'l' THEN {energy("mean")} END AS loudness
        FROM (
            SELECT layout_id, bucket, generate_subscripts(n, 1) AS i, unnest(n) AS n,
                unnest(low) AS low, unnest(mean) AS mean, unnest(high) AS high,
                unnest(gain) AS gain
            FROM taken
        ) AS number LEFT JOIN special USING (layout_id, i)
    ) AS shaped
    GROUP BY layout_id, bucket, i, shape
), whole AS (
    SELECT layout_id, bucket, sum(rows)::int AS rows, sum(covered) AS covered, max(at) AS ended
    FROM taken GROUP BY layout_id, bucket
)
SELECT e.layout_id, e.bucket, w.rows, w.covered, array_agg(e.n ORDER BY e.i),
    array_agg(e.low ORDER BY e.i), array_agg(e.mean ORDER BY e.i), array_agg(e.high ORDER BY e.i),
    min(t.last), array_agg(e.gain ORDER BY e.i)
FROM element e
JOIN whole w ON w.layout_id = e.layout_id AND w.bucket = e.bucket
JOIN taken t ON t.layout_id = w.layout_id AND t.at = w.ended
GROUP BY e.layout_id, e.bucket, w.rows, w.covered
"""


def upsert(level: str, select: str) -> str:
    """Rows that come out as they are already are not written again."""
    values = COLUMNS.removeprefix("layout_id, at, ").split(", ")
    old = ", ".join(f"t.{column}" for column in values)
    new = ", ".join(f"excluded.{column}" for column in values)
    return (
        f"INSERT INTO monitoring_{level} AS t ({COLUMNS}) {select} "
        f"ON CONFLICT (layout_id, at) DO UPDATE SET ({', '.join(values)}) = ROW({new}) "
        f"WHERE ({old}) IS DISTINCT FROM ({new})"
    )
