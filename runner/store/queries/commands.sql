-- name: command_columns
id, key, kind, delivery_guid, installation_id, repository_id, owner, repository, issue, comment_id,
comment_kind, actor_id, actor_login, verb, text, detail, created_at, state, outcome, attempts

-- name: command_by_id
SELECT @{command_columns} FROM commands WHERE id = $1

-- name: next_command
-- The oldest new command of its issue that nobody routes; installations take
-- turns.
SELECT c.id FROM commands c JOIN installations i ON i.id = c.installation_id
WHERE c.state = 'new' AND c.retry_at <= @now
  AND (c.node IS NULL OR EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node AND n.lease_until <= @now))
  AND NOT EXISTS (SELECT 1 FROM commands e
    WHERE e.state = 'new' AND e.repository_id = c.repository_id AND e.issue = c.issue AND e.ord < c.ord)
ORDER BY i.command_turn, c.ord
LIMIT 1

-- name: claim_command
UPDATE commands SET node = $2, attempts = attempts + 1 WHERE id = $1 RETURNING @{command_columns}

-- name: command_turn
UPDATE installations SET command_turn = $2 WHERE id = $1

-- name: route_command
UPDATE commands SET state = $3, outcome = $4, node = NULL
WHERE id = $1 AND node = $2 AND state = 'new'
  AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = $2 AND n.lease_until > @now)
RETURNING @{command_columns}

-- name: release_command
UPDATE commands SET node = NULL, retry_at = $3, outcome = $4
WHERE id = $1 AND node = $2 AND state = 'new'

-- name: insert_message
INSERT INTO messages (id, session_id, command_id, actor_id, actor, text, created_at)
VALUES ($1, $2, NULLIF($3, ''), $4, $5, $6, @now)
