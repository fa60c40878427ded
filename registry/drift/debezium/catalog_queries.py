"""What is asked of PostgreSQL's catalog; each row's names are the fields of registry.drift.debezium.tables."""

from __future__ import annotations

from typing import Final

SERVER: Final = """
SELECT current_setting('server_version_num')::int AS version, current_setting('wal_level') AS wal_level,
       current_database() AS database
"""

TABLES: Final = b"""
SELECT c.oid::bigint AS oid, n.nspname AS schema, c.relname AS name, c.relkind = 'p' AS partitioned,
       CASE c.relreplident WHEN 'd' THEN 'default' WHEN 'n' THEN 'nothing' WHEN 'f' THEN 'full' ELSE 'index' END
         AS identity,
       (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attisdropped)::int
         AS dropped_columns
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%%'
ORDER BY n.nspname, c.relname
LIMIT %(most)s
"""

# The modifier of a domain stands in pg_type; its base type is followed down to the last one.
COLUMNS: Final = b"""
WITH RECURSIVE bases AS (
    SELECT t.oid AS type, t.oid AS base, -1 AS modifier FROM pg_type t
    WHERE t.oid IN (SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0)
  UNION ALL
    SELECT b.type, t.typbasetype, t.typtypmod FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype = 'd'
), base AS (
    SELECT b.type, b.base, b.modifier FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype <> 'd'
)
SELECT a.attrelid::bigint AS table_oid, a.attname AS name, t.typname AS type,
       format_type(a.atttypid, a.atttypmod) AS declared,
       NOT a.attnotnull AS nullable, pg_get_expr(d.adbin, d.adrelid) AS default,
       a.attgenerated <> '' AS generated, a.attidentity <> '' AS identity,
       CASE WHEN m.typmod < 0 THEN NULL
            WHEN e.typname IN ('varchar', 'bpchar') THEN m.typmod - 4
            WHEN e.typname IN ('bit', 'varbit') THEN m.typmod END AS length,
       CASE WHEN m.typmod < 0 THEN NULL
            WHEN e.typname = 'numeric' THEN ((m.typmod - 4) & 2047) - ((m.typmod - 4) & 1024) * 2
            WHEN e.typname IN ('time', 'timetz', 'timestamp', 'timestamptz') THEN m.typmod END AS scale,
       CASE WHEN m.typmod >= 0 AND e.typname = 'numeric' THEN (m.typmod - 4) >> 16 END AS precision,
       a.attndims::int AS dimensions,
       CASE e.typtype WHEN 'b' THEN 'base' WHEN 'e' THEN 'enum' WHEN 'c' THEN 'composite' WHEN 'r' THEN 'range'
            WHEN 'm' THEN 'range' ELSE 'other' END AS kind,
       ARRAY(SELECT l.enumlabel FROM pg_enum l WHERE l.enumtypid = e.oid ORDER BY l.enumsortorder)::text[] AS labels,
       a.attnum::int AS number
FROM pg_attribute a
JOIN base b ON b.type = a.atttypid
JOIN pg_type t ON t.oid = b.base
JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
CROSS JOIN LATERAL (SELECT CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE b.modifier END AS typmod) m
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
LIMIT %(most)s
"""

INDEXES: Final = b"""
SELECT i.indrelid::bigint AS table_oid, c.relname AS name, i.indisprimary AS primary,
       i.indisreplident AS replica_identity, i.indpred IS NOT NULL AS partial,
       CASE WHEN i.indexprs IS NULL THEN ARRAY(
           SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
           JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
           WHERE k.place <= i.indnkeyatts ORDER BY k.place)::text[] ELSE ARRAY[]::text[] END AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(%(oids)s::oid[]) AND i.indisunique AND i.indisvalid
ORDER BY i.indrelid, c.relname
LIMIT %(most)s
"""

PUBLICATIONS: Final = b"""
SELECT pubname AS name, puballtables AS all_tables, pubinsert AS inserts, pubupdate AS updates, pubdelete AS deletes,
       pubtruncate AS truncates
FROM pg_publication ORDER BY pubname LIMIT 1000
"""

PUBLISHED: Final = """
SELECT schemaname AS schema, tablename AS name, pubname AS publication, attnames::text[] AS columns,
       coalesce(rowfilter, '') AS row_filter
FROM pg_publication_tables ORDER BY 1, 2, 3 LIMIT 100000
"""
PUBLISHED_BEFORE_15: Final = """
SELECT schemaname AS schema, tablename AS name, pubname AS publication, NULL::text[] AS columns, '' AS row_filter
FROM pg_publication_tables ORDER BY 1, 2, 3 LIMIT 100000
"""

_LAG: Final = """
       pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END,
                       confirmed_flush_lsn)::bigint AS lag_bytes"""
SLOTS: Final = f"""
SELECT slot_name AS name, coalesce(plugin, '') AS plugin, active, coalesce(wal_status, '') AS wal_status,
       safe_wal_size::bigint AS safe_bytes,{_LAG}
FROM pg_replication_slots WHERE slot_name = %(slot)s AND database = current_database()
"""  # noqa: S608 - constants alone
SLOTS_BEFORE_13: Final = f"""
SELECT slot_name AS name, coalesce(plugin, '') AS plugin, active, '' AS wal_status, NULL::bigint AS safe_bytes,{_LAG}
FROM pg_replication_slots WHERE slot_name = %(slot)s AND database = current_database()
"""  # noqa: S608 - constants alone
