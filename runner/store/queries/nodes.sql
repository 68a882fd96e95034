-- name: insert_node
INSERT INTO nodes (id, name, lease_until, started_at) VALUES ($1, $2, @now + $3, @now)
RETURNING @now

-- name: expire_other_nodes
UPDATE nodes SET lease_until = @now WHERE lease_until > @now

-- name: forget_nodes
DELETE FROM nodes WHERE lease_until < @now - $1
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE node = nodes.id)
  AND NOT EXISTS (SELECT 1 FROM commands WHERE node = nodes.id)
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE node = nodes.id)

-- name: beat_node
UPDATE nodes SET lease_until = @now + $2 WHERE id = $1 AND lease_until > @now
RETURNING @now

-- name: drain_node
UPDATE nodes SET draining = TRUE WHERE id = $1 AND lease_until > @now

-- name: leave_node
UPDATE nodes SET lease_until = @now WHERE id = $1 AND lease_until > @now

-- name: node_service
SELECT lease_until > @now, draining FROM nodes WHERE id = $1
