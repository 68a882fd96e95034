-- name: insert_delivery
INSERT INTO deliveries (guid, event, action, hook_id, installation_id, repository_id, body, source, received_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, @now)
ON CONFLICT (guid) DO NOTHING

-- name: delivery_known
SELECT EXISTS (SELECT 1 FROM deliveries WHERE guid = $1)

-- name: insert_command
INSERT INTO commands (id, key, kind, delivery_guid, installation_id, repository_id, owner, repository, issue,
  comment_id, comment_kind, actor_id, actor_login, verb, text, detail, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 'new', @now)
ON CONFLICT (key) DO NOTHING

-- name: delivery_by_guid
SELECT guid, event, action, hook_id, installation_id, repository_id, body, source, received_at
FROM deliveries WHERE guid = $1
