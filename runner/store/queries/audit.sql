-- name: audit_columns
seq, at, installation_id, repository_id, session_id, actor, actor_id, action, subject, detail, previous, hash

-- name: clock
SELECT @now

-- name: audit_head
SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1

-- name: insert_audit
INSERT INTO audit_log (@{audit_columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)

-- name: audit_log
SELECT @{audit_columns} FROM audit_log WHERE seq >= $1 ORDER BY seq LIMIT $2
