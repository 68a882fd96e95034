-- name: session_columns
id, installation_id, repository_id, owner, repository, issue, COALESCE(command_id, ''), requester_id,
requester_login, task, issue_title, issue_body, state, reason, code, active_agent, variables, agent_versions,
usage_requests, usage_input, usage_output, usage_total, usage_cached, usage_reasoning, usage_cost_micros,
usage_unknown, active_millis + CASE WHEN phase = 'held' THEN @now - held_at ELSE 0 END, COALESCE(node, ''),
fence, next_seq, wake_at, cancel_requested, cancel_by, attempts, created_at, updated_at, ended_at

-- name: insert_lane
INSERT INTO lanes (repository_id, issue) VALUES ($1, $2) ON CONFLICT (repository_id, issue) DO NOTHING

-- name: lock_lane
SELECT issue FROM lanes WHERE repository_id = $1 AND issue = $2 @lock

-- name: insert_session
INSERT INTO sessions (id, installation_id, repository_id, owner, repository, issue, command_id, requester_id,
  requester_login, task, issue_title, issue_body, state, active_agent, variables, created_at, updated_at, phase)
SELECT $1, $2, $3, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, $11, $12, 'queued', $13, $14, @now, @now,
  CASE WHEN EXISTS (SELECT 1 FROM sessions o WHERE o.repository_id = $3 AND o.issue = $6 AND o.phase <> 'ended')
    THEN 'queued' ELSE 'ready' END

-- name: promote_session
UPDATE sessions SET phase = 'ready'
WHERE phase = 'queued' AND ord = (SELECT min(q.ord) FROM sessions q
    WHERE q.repository_id = $1 AND q.issue = $2 AND q.phase = 'queued')
  AND NOT EXISTS (SELECT 1 FROM sessions a
    WHERE a.repository_id = $1 AND a.issue = $2 AND a.phase IN ('ready', 'held', 'parked'))

-- name: lock_session
SELECT phase FROM sessions WHERE id = $1 @lock

-- name: session_lane
SELECT repository_id, issue FROM sessions WHERE id = $1

-- name: wake_session
UPDATE sessions SET
  phase = CASE WHEN phase = 'parked' THEN 'ready' ELSE phase END,
  woken = (phase = 'held')
WHERE id = $1 AND phase IN ('parked', 'held')

-- name: cancel_unstarted
-- A session that no node ever held ends at once.
UPDATE sessions SET phase = 'ended', state = 'cancelled', cancel_requested = TRUE, cancel_by = $2,
  reason = $3, updated_at = @now, ended_at = @now
WHERE id = $1 AND fence = 0 AND phase IN ('queued', 'ready')

-- name: flag_cancel
UPDATE sessions SET cancel_requested = TRUE, cancel_by = $2, updated_at = @now,
  phase = CASE WHEN phase = 'parked' THEN 'ready' ELSE phase END,
  woken = (woken OR phase = 'held')
WHERE id = $1 AND phase <> 'ended' AND NOT cancel_requested

-- name: session_by_id
SELECT @{session_columns} FROM sessions WHERE id = $1

-- name: sessions_by_prefix
SELECT @{session_columns} FROM sessions WHERE substr(id, 1, length($1)) = $1 ORDER BY ord DESC LIMIT 2

-- name: active_session
SELECT @{session_columns} FROM sessions
WHERE repository_id = $1 AND issue = $2 AND phase IN ('ready', 'held', 'parked')

-- name: last_session
SELECT @{session_columns} FROM sessions WHERE repository_id = $1 AND issue = $2 ORDER BY ord DESC LIMIT 1

-- name: sessions
SELECT @{session_columns} FROM sessions
WHERE (CAST($1 AS BIGINT) = 0 OR installation_id = $1)
  AND (CAST($2 AS BIGINT) = 0 OR repository_id = $2)
  AND (CAST($3 AS BIGINT) = 0 OR issue = $3)
  AND (CAST($4 AS TEXT) = '' OR $4 LIKE '%,' || state || ',%')
  AND (NOT CAST($5 AS BOOLEAN) OR phase <> 'ended')
ORDER BY ord DESC LIMIT $6

-- name: records
SELECT seq, run_id, parent_run_id, epoch, ts, version, kind, payload FROM run_items
WHERE session_id = $1 AND seq >= $2 ORDER BY seq

-- name: next_orphan
-- A session whose node is dead. It keeps its place under the caps.
SELECT s.id, s.fence, s.attempts, s.repository_id, s.issue
FROM sessions s JOIN nodes n ON n.id = s.node
WHERE s.phase = 'held' AND n.lease_until <= @now
ORDER BY s.ord LIMIT 1

-- name: next_ready
-- A session that wants a node, within the caps $1 (all) and $2 (installation).
SELECT s.id, s.fence, s.attempts, s.repository_id, s.issue
FROM sessions s JOIN installations i ON i.id = s.installation_id
WHERE (s.phase = 'ready' OR (s.phase = 'parked' AND s.wake_at > 0 AND s.wake_at <= @now))
  AND (CAST($1 AS BIGINT) = 0 OR (SELECT count(*) FROM sessions h WHERE h.phase = 'held') < $1)
  AND (CAST($2 AS BIGINT) = 0 OR (SELECT count(*) FROM sessions h
    WHERE h.phase = 'held' AND h.installation_id = s.installation_id) < $2)
ORDER BY i.session_turn, (s.state = 'queued'), s.ord
LIMIT 1

-- name: acquire_session
-- The conditions are those of next_orphan and next_ready again: whoever changed
-- the session in between wins.
UPDATE sessions SET node = $3, phase = 'held', fence = fence + 1, attempts = attempts + 1,
  wake_at = 0, woken = FALSE, updated_at = @now, held_at = @now,
  active_millis = active_millis + CASE WHEN phase = 'held'
    THEN @greatest(0, (SELECT n.lease_until FROM nodes n WHERE n.id = sessions.node) - held_at) ELSE 0 END,
  state = CASE WHEN state = 'queued' THEN 'preparing' ELSE state END
WHERE id = $1 AND fence = $2 AND (phase = 'ready'
  OR (phase = 'parked' AND wake_at > 0 AND wake_at <= @now)
  OR (phase = 'held' AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = sessions.node AND n.lease_until <= @now)))
RETURNING @{session_columns}

-- name: dead_letter
UPDATE sessions SET phase = 'ended', node = NULL, fence = fence + 1, state = 'failed', code = $3, reason = $4,
  updated_at = @now, ended_at = @now
WHERE id = $1 AND fence = $2 AND (phase IN ('ready', 'parked')
  OR (phase = 'held' AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = sessions.node AND n.lease_until <= @now)))

-- name: session_turn
UPDATE installations SET session_turn = $2 WHERE id = $1
