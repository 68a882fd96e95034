-- name: schema_table_sqlite
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version')

-- name: schema_table_postgres
SELECT to_regclass('goose_db_version') IS NOT NULL

-- name: schema_version
SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied

-- name: lock_migration
SELECT pg_advisory_lock(hashtextextended('handoff migrates ' || current_schema(), 0))

-- name: unlock_migration
SELECT pg_advisory_unlock(hashtextextended('handoff migrates ' || current_schema(), 0))

-- name: notify
SELECT pg_notify($1, $2)

-- name: lock_sched
SELECT turn FROM sched WHERE name = $1 @lock

-- name: touch_sched
UPDATE sched SET turn = turn WHERE name = $1

-- name: next_turn
UPDATE sched SET turn = turn + 1 WHERE name = $1 RETURNING turn

-- name: ensure_installation
INSERT INTO installations (id) VALUES ($1) ON CONFLICT (id) DO NOTHING

-- name: read_mark
SELECT value FROM marks WHERE name = $1

-- name: raise_mark
UPDATE marks SET value = @greatest(value, $2) WHERE name = $1

-- name: next_mark
UPDATE marks SET value = value + 1 WHERE name = $1 RETURNING value
