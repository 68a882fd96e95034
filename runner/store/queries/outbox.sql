-- name: effect_columns
id, key, kind, installation_id, repository_id, owner, repository, COALESCE(session_id, ''), COALESCE(command_id, ''),
call_key, after_key, priority, payload, state, result, error, attempts, not_before, COALESCE(node, ''), version,
created_at, updated_at

-- name: lock_effect_state
SELECT state FROM outbox WHERE key = $1 @lock

-- name: insert_effect
INSERT INTO outbox (key, kind, installation_id, repository_id, owner, repository, session_id, command_id, call_key,
  after_key, priority, payload, state, error, not_before, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), NULLIF($8, ''), $9, $10, $11, $12, $13, $14, $15, @now, @now)
ON CONFLICT (key) DO NOTHING

-- name: replace_effect
UPDATE outbox SET payload = $2, priority = $3, not_before = @greatest(not_before, $4), version = version + 1,
  state = CASE WHEN state IN ('done', 'failed', 'unknown') THEN 'pending' ELSE state END, updated_at = @now
WHERE key = $1 AND kind = $5 AND payload <> $2 AND state <> 'superseded'

-- name: effect_by_key
SELECT @{effect_columns} FROM outbox WHERE key = $1

-- name: effects_of_session
SELECT @{effect_columns} FROM outbox WHERE session_id = $1 ORDER BY id

-- name: next_unsettled_effect
-- One whose sender died, or gave up without knowing whether it was sent.
SELECT e.id FROM outbox e LEFT JOIN nodes n ON n.id = e.node
WHERE e.state = 'sending' AND e.not_before <= @now AND (e.node IS NULL OR n.lease_until <= @now)
ORDER BY e.priority, e.id LIMIT 1

-- name: next_pending_effect
-- Tokens are counted in thousandths, which refill at one a millisecond: $1 is
-- the burst, $2 one token, $3 one token plus those reserved for priority 0.
SELECT e.id FROM outbox e JOIN installations i ON i.id = e.installation_id
WHERE e.state = 'pending' AND e.not_before <= @now
  AND (e.after_key = '' OR EXISTS (SELECT 1 FROM outbox d WHERE d.key = e.after_key AND d.state = 'done'))
  AND @least(CAST($1 AS BIGINT), i.writer_tokens + (@now - i.writer_at))
    >= CASE WHEN e.priority = 0 THEN CAST($2 AS BIGINT) ELSE CAST($3 AS BIGINT) END
ORDER BY e.priority, i.outbox_turn, e.id LIMIT 1

-- name: claim_effect
UPDATE outbox SET state = 'sending', node = $2, attempts = attempts + 1, updated_at = @now WHERE id = $1
RETURNING @{effect_columns}

-- name: spend_token
UPDATE installations SET outbox_turn = $2,
  writer_tokens = @least(CAST($3 AS BIGINT), writer_tokens + (@now - writer_at)) - $4, writer_at = @now
WHERE id = $1

-- name: end_effect
-- The claim is the fence. A newer payload that came meanwhile is sent next.
UPDATE outbox SET node = NULL, result = CASE WHEN $5 = '' THEN result ELSE $5 END, error = $6,
  not_before = @greatest(CASE WHEN version > $8 THEN not_before ELSE 0 END, $7), updated_at = @now,
  state = CASE WHEN version > $8 AND $4 IN ('done', 'failed', 'unknown') THEN 'pending' ELSE $4 END
WHERE id = $1 AND node = $2 AND attempts = $3 AND state = 'sending'
RETURNING state

-- name: end_dependents
UPDATE outbox SET state = $2, error = $3, updated_at = @now WHERE after_key = $1 AND state = 'pending'
RETURNING key

-- name: show_state
UPDATE sessions SET state = $2, reason = '' WHERE id = $1 AND phase <> 'ended'
