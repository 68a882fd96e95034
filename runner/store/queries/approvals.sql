-- name: approval_columns
id, session_id, installation_id, repository_id, owner, repository, issue, call_key, kind, digest, nonce, record,
base, base_ref, commit_id, tree, target_ref, expected_remote, title, body, config_hash, role_needed, requester_id,
requester_login, prompt_comment_id, prompt_body_hash, check_run_id, prompted_at, state, decided_by, decided_by_id,
decided_via, reason, decided_at, consumed_at, consumed_by, expires_at, next_poll_at, poll_etag, restore_epoch,
created_at

-- name: insert_approval
INSERT INTO approvals (id, session_id, installation_id, repository_id, owner, repository, issue, call_key, kind,
  digest, nonce, record, base, base_ref, commit_id, tree, target_ref, expected_remote, title, body, config_hash,
  role_needed, requester_id, requester_login, state, expires_at, restore_epoch, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
  $24, 'pending', $25, (SELECT value FROM marks WHERE name = 'restore_epoch'), @now)

-- name: approval_by_id
SELECT @{approval_columns} FROM approvals WHERE id = $1

-- name: approval_session
SELECT session_id FROM approvals WHERE id = $1

-- name: approvals_of_session
SELECT @{approval_columns} FROM approvals WHERE session_id = $1 ORDER BY ord

-- name: approval_by_prompt
SELECT @{approval_columns} FROM approvals WHERE repository_id = $1 AND prompt_comment_id = $2

-- name: approvals_by_digest
SELECT @{approval_columns} FROM approvals
WHERE repository_id = $1 AND issue = $2 AND substr(digest, 1, length($3)) = $3
ORDER BY (state = 'pending') DESC, ord DESC LIMIT 2

-- name: supersede_call
UPDATE approvals SET state = 'superseded', reason = 'asked again', decided_via = 'host', decided_at = @now
WHERE session_id = $1 AND call_key = $2 AND state = 'pending'

-- name: supersede_session
UPDATE approvals SET state = 'superseded', reason = $2, decided_via = 'host', decided_at = @now
WHERE session_id = $1 AND state IN ('pending', 'approved')

-- name: mark_prompted
UPDATE approvals SET
  prompt_comment_id = CASE WHEN CAST($2 AS BIGINT) = 0 THEN prompt_comment_id ELSE $2 END,
  prompt_body_hash = CASE WHEN $3 = '' THEN prompt_body_hash ELSE $3 END,
  check_run_id = CASE WHEN CAST($4 AS BIGINT) = 0 THEN check_run_id ELSE $4 END,
  prompted_at = CASE WHEN CAST($5 AS BIGINT) <> 0 THEN $5 WHEN CAST($2 AS BIGINT) <> 0 THEN @now ELSE prompted_at END,
  next_poll_at = CASE WHEN CAST($2 AS BIGINT) <> 0 THEN @now ELSE next_poll_at END
WHERE id = $1

-- name: due_polls
UPDATE approvals SET next_poll_at = @now + $1
WHERE id IN (SELECT id FROM approvals
  WHERE state = 'pending' AND prompt_comment_id <> 0 AND next_poll_at <= @now ORDER BY next_poll_at LIMIT $2 @skip)
RETURNING @{approval_columns}

-- name: set_poll
UPDATE approvals SET next_poll_at = $2, poll_etag = $3 WHERE id = $1

-- name: approve
-- $7 is when the person acted, 0 for now; $8 the cooldown.
UPDATE approvals SET state = $2, decided_by = $3, decided_by_id = $4, decided_via = $5, reason = $6, decided_at = @now
WHERE id = $1 AND state = 'pending' AND (expires_at = 0 OR expires_at > @now) AND prompted_at > 0
  AND CASE WHEN CAST($7 AS BIGINT) = 0 THEN @now ELSE $7 END >= prompted_at + $8
  AND restore_epoch = (SELECT value FROM marks WHERE name = 'restore_epoch')

-- name: reject
-- $7 is the grace period: a rejection so soon after an approval wins.
UPDATE approvals SET state = $2, decided_by = $3, decided_by_id = $4, decided_via = $5, reason = $6, decided_at = @now
WHERE id = $1 AND (state = 'pending' OR (state = 'approved' AND decided_at + $7 > @now))

-- name: supersede
UPDATE approvals SET state = $2, decided_by = $3, decided_by_id = $4, decided_via = $5, reason = $6, decided_at = @now
WHERE id = $1 AND state IN ('pending', 'approved')

-- name: expire
UPDATE approvals SET state = $2, decided_by = $3, decided_by_id = $4, decided_via = $5, reason = $6, decided_at = @now
WHERE id = $1 AND state = 'pending' AND expires_at > 0 AND expires_at <= @now

-- name: approval_fitness
-- Whether its time is over, and whether it is from before a restored backup.
SELECT (expires_at > 0 AND expires_at <= @now),
  restore_epoch <> (SELECT value FROM marks WHERE name = 'restore_epoch')
FROM approvals WHERE id = $1

-- name: consume
UPDATE approvals SET state = 'consumed', consumed_at = @now, consumed_by = $2
WHERE id = $1 AND state = 'approved' AND (expires_at = 0 OR expires_at > @now)
  AND restore_epoch = (SELECT value FROM marks WHERE name = 'restore_epoch')

-- name: expired_approvals
SELECT id FROM approvals WHERE state = 'pending' AND expires_at > 0 AND expires_at <= @now ORDER BY expires_at LIMIT $1

-- name: open_approvals
SELECT @{approval_columns} FROM approvals WHERE state IN ('pending', 'approved') ORDER BY ord
