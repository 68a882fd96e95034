-- name: server_key
SELECT key FROM server_keys WHERE name = $1

-- name: insert_server_key
INSERT INTO server_keys (name, key, created_at) VALUES ($1, $2, @now) ON CONFLICT (name) DO NOTHING

-- name: renew_server_key
INSERT INTO server_keys (name, key, created_at) VALUES ($1, $2, @now)
ON CONFLICT (name) DO UPDATE SET key = excluded.key, created_at = excluded.created_at
