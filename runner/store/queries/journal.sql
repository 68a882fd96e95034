-- name: guard_session
-- The fence: every write of a lease begins here. It locks the session's row and
-- hands out the numbers of $4 records. A session that gets on with its work has
-- its attempts back: only one that brings its holders down at the same place
-- again and again shall end by them.
UPDATE sessions SET next_seq = next_seq + $4, updated_at = @now,
  attempts = CASE WHEN $4 > 0 THEN 0 ELSE attempts END
WHERE id = $1 AND fence = $2 AND node = $3 AND phase = 'held'
  AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = $3 AND n.lease_until > @now)
RETURNING next_seq - $4, @now

-- name: advance_session
-- Numbers for records that the outbox writes, whoever holds the session.
UPDATE sessions SET next_seq = next_seq + $2, updated_at = @now WHERE id = $1
RETURNING next_seq - $2, @now, fence

-- name: insert_records
INSERT INTO run_items (session_id, seq, run_id, parent_run_id, epoch, ts, version, kind, payload) VALUES

-- name: set_state
UPDATE sessions SET state = $2, reason = $3 WHERE id = $1

-- name: set_progress
UPDATE sessions SET active_agent = $2, variables = $3,
  usage_requests = usage_requests + $4, usage_input = usage_input + $5, usage_output = usage_output + $6,
  usage_total = usage_total + $7, usage_cached = usage_cached + $8, usage_reasoning = usage_reasoning + $9,
  usage_cost_micros = usage_cost_micros + $10, usage_unknown = (usage_unknown OR $11)
WHERE id = $1

-- name: set_agent_versions
UPDATE sessions SET agent_versions = $2 WHERE id = $1

-- name: insert_usage
INSERT INTO usage_ledger (session_id, installation_id, repository_id, requester_id, agent, model, attempt, input,
  output, total, cached, reasoning, cost_micros, cost_unknown, estimated, created_at) VALUES

-- name: take_message
UPDATE messages SET taken_seq = $3 WHERE id = $1 AND session_id = $2 AND taken_seq = 0

-- name: pending_messages
SELECT id, session_id, COALESCE(command_id, ''), actor_id, actor, text, created_at, taken_seq FROM messages
WHERE session_id = $1 AND taken_seq = 0 ORDER BY ord

-- name: cancel_requested
SELECT cancel_requested, cancel_by FROM sessions WHERE id = $1

-- name: put_checkpoint
INSERT INTO checkpoints (session_id, seq, base, tree, changes, created_at) VALUES ($1, $2, $3, $4, $5, @now)
ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, base = excluded.base, tree = excluded.tree,
  changes = excluded.changes, created_at = excluded.created_at

-- name: checkpoint
SELECT base, tree, changes FROM checkpoints WHERE session_id = $1

-- name: put_blob
INSERT INTO blobs (installation_id, id, content, created_at) VALUES ($1, $2, $3, @now)
ON CONFLICT (installation_id, id) DO NOTHING

-- name: blob_exists
SELECT EXISTS (SELECT 1 FROM blobs WHERE installation_id = $1 AND id = $2)

-- name: blob
SELECT content FROM blobs WHERE installation_id = $1 AND id = $2

-- name: put_artifact
INSERT INTO artifacts (id, session_id, name, media_type, body, size, created_at) VALUES ($1, $2, $3, $4, $5, $6, @now)
ON CONFLICT (session_id, name) DO UPDATE SET media_type = excluded.media_type, body = excluded.body,
  size = excluded.size, created_at = excluded.created_at
RETURNING id

-- name: artifact
SELECT id, session_id, name, media_type, body, size, created_at FROM artifacts WHERE id = $1

-- name: artifacts
SELECT id, session_id, name, media_type, NULL, size, created_at FROM artifacts WHERE session_id = $1 ORDER BY id

-- name: suspend_session
UPDATE sessions SET node = NULL, state = $2, reason = $3, attempts = 0,
  active_millis = active_millis + (@now - held_at), held_at = 0,
  wake_at = COALESCE((SELECT CASE WHEN CAST($4 AS BIGINT) = 0 THEN min(a.expires_at)
      ELSE @least(min(a.expires_at), $4) END
    FROM approvals a WHERE a.session_id = $1 AND a.state = 'pending' AND a.expires_at > 0), $4),
  phase = CASE WHEN woken THEN 'ready' ELSE 'parked' END
WHERE id = $1

-- name: retry_session
UPDATE sessions SET node = NULL, reason = $2, wake_at = $3,
  active_millis = active_millis + (@now - held_at), held_at = 0,
  phase = CASE WHEN woken OR $3 <= @now THEN 'ready' ELSE 'parked' END
WHERE id = $1

-- name: finish_session
UPDATE sessions SET phase = 'ended', node = NULL, state = $2, code = $3, reason = $4, wake_at = 0,
  active_millis = active_millis + (@now - held_at), held_at = 0, ended_at = @now
WHERE id = $1
