-- name: base_run
-- Another session counts while it still is held under the fence of its claim.
SELECT result, EXISTS (SELECT 1 FROM sessions s JOIN nodes n ON n.id = s.node
    WHERE s.id = base_runs.holder AND s.fence = base_runs.holder_fence AND s.id <> $5 AND n.lease_until > @now)
FROM base_runs
WHERE installation_id = $1 AND repository_id = $2 AND commit_id = $3 AND recipe = $4

-- name: claim_base_run
INSERT INTO base_runs (installation_id, repository_id, commit_id, recipe, holder, holder_fence, created_at)
VALUES ($1, $2, $3, $4, $5, $6, @now)
ON CONFLICT (installation_id, repository_id, commit_id, recipe) DO UPDATE
SET holder = excluded.holder, holder_fence = excluded.holder_fence, created_at = excluded.created_at
WHERE base_runs.result = '' AND NOT EXISTS (SELECT 1 FROM sessions s JOIN nodes n ON n.id = s.node
    WHERE s.id = base_runs.holder AND s.fence = base_runs.holder_fence AND s.id <> excluded.holder AND n.lease_until > @now)

-- name: keep_base_run
INSERT INTO base_runs (installation_id, repository_id, commit_id, recipe, holder, holder_fence, result, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, @now)
ON CONFLICT (installation_id, repository_id, commit_id, recipe) DO UPDATE
SET result = excluded.result, created_at = excluded.created_at

-- name: forget_base_runs
DELETE FROM base_runs WHERE created_at < @now - $1
