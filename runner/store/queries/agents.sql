-- name: seed_agent
-- $4 is whether an edited agent is replaced as well.
INSERT INTO agents (id, version, source, seeded_version, updated_at) VALUES ($1, $2, $3, $2, @now)
ON CONFLICT (id) DO UPDATE SET version = excluded.version, source = excluded.source,
  seeded_version = excluded.seeded_version, updated_at = excluded.updated_at
WHERE (agents.version = agents.seeded_version OR CAST($4 AS BOOLEAN)) AND agents.version <> excluded.version

-- name: put_agent
INSERT INTO agents (id, version, source, seeded_version, updated_at) VALUES ($1, $2, $3, '', @now)
ON CONFLICT (id) DO UPDATE SET version = excluded.version, source = excluded.source, updated_at = excluded.updated_at

-- name: agents
SELECT id, version, source, version <> seeded_version, updated_at FROM agents ORDER BY id

-- name: agent
SELECT id, version, source, version <> seeded_version, updated_at FROM agents WHERE id = $1

-- name: sum_usage
SELECT count(*), COALESCE(sum(input), 0), COALESCE(sum(output), 0), COALESCE(sum(total), 0),
  COALESCE(sum(cached), 0), COALESCE(sum(reasoning), 0), COALESCE(sum(cost_micros), 0),
  COALESCE(sum(CASE WHEN cost_unknown THEN 1 ELSE 0 END), 0) > 0
FROM usage_ledger
WHERE (CAST($1 AS BIGINT) = 0 OR installation_id = $1)
  AND (CAST($2 AS BIGINT) = 0 OR repository_id = $2)
  AND (CAST($3 AS BIGINT) = 0 OR requester_id = $3)
  AND (CAST($4 AS TEXT) = '' OR session_id = $4)
  AND (CAST($5 AS TEXT) = '' OR agent = $5)
  AND created_at >= $6

-- name: usage_agents
SELECT DISTINCT agent FROM usage_ledger WHERE session_id = $1 ORDER BY agent
