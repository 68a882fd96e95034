-- +goose Up

-- Single values of the whole installation: the sweeper's mark, the restore epoch.
CREATE TABLE marks (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO marks (name, value) VALUES ('sweep', 0), ('restore_epoch', 1);

-- The server's own secrets, one row for each purpose.
CREATE TABLE server_keys (
    name       TEXT PRIMARY KEY,
    key        BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);

-- One row for each kind of work that is handed out. Locking the row makes caps
-- exact and turns fair; turn counts what was handed out.
CREATE TABLE sched (
    name TEXT PRIMARY KEY,
    turn BIGINT NOT NULL
);
INSERT INTO sched (name, turn) VALUES ('commands', 0), ('sessions', 0), ('outbox', 0), ('audit', 0);

-- What all nodes share about one installation: when it had its last turn, and
-- its writer queue as thousandths of tokens at a time.
CREATE TABLE installations (
    id            BIGINT PRIMARY KEY,
    command_turn  BIGINT NOT NULL DEFAULT 0,
    session_turn  BIGINT NOT NULL DEFAULT 0,
    outbox_turn   BIGINT NOT NULL DEFAULT 0,
    writer_tokens BIGINT NOT NULL DEFAULT 0,
    writer_at     BIGINT NOT NULL DEFAULT 0
);

-- One row for each incarnation of a process.
CREATE TABLE nodes (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    draining    BOOLEAN NOT NULL DEFAULT FALSE,
    started_at  BIGINT NOT NULL
);

CREATE TABLE deliveries (
    guid            TEXT PRIMARY KEY,
    event           TEXT NOT NULL,
    action          TEXT NOT NULL,
    hook_id         BIGINT NOT NULL,
    installation_id BIGINT NOT NULL,
    repository_id   BIGINT NOT NULL,
    body            BYTEA NOT NULL,
    source          TEXT NOT NULL,
    received_at     BIGINT NOT NULL
);
CREATE INDEX deliveries_received ON deliveries (received_at);

CREATE TABLE commands (
    ord             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    key             TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL,
    delivery_guid   TEXT NOT NULL REFERENCES deliveries (guid) ON DELETE CASCADE,
    installation_id BIGINT NOT NULL REFERENCES installations (id),
    repository_id   BIGINT NOT NULL,
    owner           TEXT NOT NULL,
    repository      TEXT NOT NULL,
    issue           BIGINT NOT NULL,
    comment_id      BIGINT NOT NULL,
    comment_kind    TEXT NOT NULL,
    actor_id        BIGINT NOT NULL,
    actor_login     TEXT NOT NULL,
    verb            TEXT NOT NULL,
    text            TEXT NOT NULL,
    detail          TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('new', 'routed', 'refused')),
    outcome         TEXT NOT NULL DEFAULT '',
    attempts        BIGINT NOT NULL DEFAULT 0,
    node            TEXT REFERENCES nodes (id),
    retry_at        BIGINT NOT NULL DEFAULT 0,
    created_at      BIGINT NOT NULL
);
CREATE INDEX commands_delivery ON commands (delivery_guid);
CREATE INDEX commands_node ON commands (node) WHERE node IS NOT NULL;
CREATE INDEX commands_new ON commands (repository_id, issue, ord) WHERE state = 'new';

-- One row for each issue that ever had a session; locking it orders the lane.
CREATE TABLE lanes (
    repository_id BIGINT NOT NULL,
    issue         BIGINT NOT NULL,
    PRIMARY KEY (repository_id, issue)
);

CREATE TABLE sessions (
    ord               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    installation_id   BIGINT NOT NULL REFERENCES installations (id),
    repository_id     BIGINT NOT NULL,
    owner             TEXT NOT NULL,
    repository        TEXT NOT NULL,
    issue             BIGINT NOT NULL,
    command_id        TEXT REFERENCES commands (id) ON DELETE SET NULL,
    requester_id      BIGINT NOT NULL,
    requester_login   TEXT NOT NULL,
    task              TEXT NOT NULL,
    issue_title       TEXT NOT NULL,
    issue_body        TEXT NOT NULL,

    -- What people are told.
    state             TEXT NOT NULL,
    reason            TEXT NOT NULL DEFAULT '',
    code              TEXT NOT NULL DEFAULT '',

    -- What the scheduler knows. A held session has a node, no other has.
    phase             TEXT NOT NULL CHECK (phase IN ('queued', 'ready', 'held', 'parked', 'ended')),
    node              TEXT REFERENCES nodes (id),
    fence             BIGINT NOT NULL DEFAULT 0,
    next_seq          BIGINT NOT NULL DEFAULT 1,
    wake_at           BIGINT NOT NULL DEFAULT 0,
    woken             BOOLEAN NOT NULL DEFAULT FALSE,
    cancel_requested  BOOLEAN NOT NULL DEFAULT FALSE,
    cancel_by         TEXT NOT NULL DEFAULT '',
    attempts          BIGINT NOT NULL DEFAULT 0,
    held_at           BIGINT NOT NULL DEFAULT 0,
    active_millis     BIGINT NOT NULL DEFAULT 0,

    active_agent      TEXT NOT NULL DEFAULT '',
    variables         TEXT NOT NULL DEFAULT '{}',
    agent_versions    TEXT NOT NULL DEFAULT '{}',
    usage_requests    BIGINT NOT NULL DEFAULT 0,
    usage_input       BIGINT NOT NULL DEFAULT 0,
    usage_output      BIGINT NOT NULL DEFAULT 0,
    usage_total       BIGINT NOT NULL DEFAULT 0,
    usage_cached      BIGINT NOT NULL DEFAULT 0,
    usage_reasoning   BIGINT NOT NULL DEFAULT 0,
    usage_cost_micros BIGINT NOT NULL DEFAULT 0,
    usage_unknown     BOOLEAN NOT NULL DEFAULT FALSE,

    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    ended_at          BIGINT NOT NULL DEFAULT 0,
    CHECK ((phase = 'held') = (node IS NOT NULL))
);
CREATE UNIQUE INDEX sessions_lane ON sessions (repository_id, issue) WHERE phase IN ('ready', 'held', 'parked');
CREATE INDEX sessions_queue ON sessions (repository_id, issue, ord) WHERE phase = 'queued';
CREATE INDEX sessions_phase ON sessions (phase, wake_at);
CREATE INDEX sessions_issue ON sessions (repository_id, issue, ord);
CREATE INDEX sessions_command ON sessions (command_id) WHERE command_id IS NOT NULL;
CREATE INDEX sessions_node ON sessions (node) WHERE node IS NOT NULL;
CREATE INDEX sessions_installation ON sessions (installation_id, ord);

-- The journal. Everything that a session is, is computed from these rows.
CREATE TABLE run_items (
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq           BIGINT NOT NULL,
    run_id        TEXT NOT NULL,
    parent_run_id TEXT NOT NULL,
    epoch         BIGINT NOT NULL,
    ts            BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    kind          TEXT NOT NULL,
    payload       TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE messages (
    ord        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    command_id TEXT REFERENCES commands (id) ON DELETE SET NULL,
    actor_id   BIGINT NOT NULL,
    actor      TEXT NOT NULL,
    text       TEXT NOT NULL,
    taken_seq  BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);
CREATE INDEX messages_command ON messages (command_id) WHERE command_id IS NOT NULL;
CREATE INDEX messages_waiting ON messages (session_id, ord);

CREATE TABLE checkpoints (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    seq        BIGINT NOT NULL,
    base       TEXT NOT NULL,
    tree       TEXT NOT NULL,
    changes    TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- File contents, zstd, by git blob id, never shared between installations.
CREATE TABLE blobs (
    installation_id BIGINT NOT NULL,
    id              TEXT NOT NULL,
    content         BYTEA NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (installation_id, id)
);

CREATE TABLE artifacts (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    body       BYTEA NOT NULL,
    size       BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (session_id, name)
);

-- What the configured tests came to on a base commit, once for all sessions. The
-- recipe is a hash of whatever else decides it. While the result is empty, the
-- holder runs them: a session under the fence with which it claimed that.
CREATE TABLE base_runs (
    installation_id BIGINT NOT NULL,
    repository_id   BIGINT NOT NULL,
    commit_id       TEXT NOT NULL,
    recipe          TEXT NOT NULL,
    result          TEXT NOT NULL DEFAULT '',
    holder          TEXT NOT NULL,
    holder_fence    BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (installation_id, repository_id, commit_id, recipe)
);
CREATE INDEX base_runs_age ON base_runs (created_at);

CREATE TABLE outbox (
    id              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key             TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL,
    installation_id BIGINT NOT NULL REFERENCES installations (id),
    repository_id   BIGINT NOT NULL,
    owner           TEXT NOT NULL,
    repository      TEXT NOT NULL,
    session_id      TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    command_id      TEXT REFERENCES commands (id) ON DELETE SET NULL,
    call_key        TEXT NOT NULL,
    after_key       TEXT NOT NULL,
    priority        BIGINT NOT NULL,
    payload         TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'done', 'failed', 'unknown', 'superseded')),
    result          TEXT NOT NULL DEFAULT '',
    error           TEXT NOT NULL DEFAULT '',
    attempts        BIGINT NOT NULL DEFAULT 0,
    not_before      BIGINT NOT NULL DEFAULT 0,
    node            TEXT REFERENCES nodes (id),
    version         BIGINT NOT NULL DEFAULT 1,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);
CREATE INDEX outbox_pending ON outbox (priority, id) WHERE state = 'pending';
CREATE INDEX outbox_sending ON outbox (priority, id) WHERE state = 'sending';
CREATE INDEX outbox_after ON outbox (after_key) WHERE after_key <> '';
CREATE INDEX outbox_command ON outbox (command_id) WHERE command_id IS NOT NULL;
CREATE INDEX outbox_node ON outbox (node) WHERE node IS NOT NULL;
CREATE INDEX outbox_session ON outbox (session_id, id);

CREATE TABLE approvals (
    ord               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    session_id        TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    installation_id   BIGINT NOT NULL,
    repository_id     BIGINT NOT NULL,
    owner             TEXT NOT NULL,
    repository        TEXT NOT NULL,
    issue             BIGINT NOT NULL,
    call_key          TEXT NOT NULL,
    kind              TEXT NOT NULL,
    digest            TEXT NOT NULL,
    nonce             TEXT NOT NULL,
    record            TEXT NOT NULL,
    base              TEXT NOT NULL,
    base_ref          TEXT NOT NULL,
    commit_id         TEXT NOT NULL,
    tree              TEXT NOT NULL,
    target_ref        TEXT NOT NULL,
    expected_remote   TEXT NOT NULL,
    title             TEXT NOT NULL,
    body              TEXT NOT NULL,
    config_hash       TEXT NOT NULL,
    role_needed       TEXT NOT NULL,
    requester_id      BIGINT NOT NULL,
    requester_login   TEXT NOT NULL,
    prompt_comment_id BIGINT NOT NULL DEFAULT 0,
    prompt_body_hash  TEXT NOT NULL DEFAULT '',
    check_run_id      BIGINT NOT NULL DEFAULT 0,
    prompted_at       BIGINT NOT NULL DEFAULT 0,
    state             TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'superseded', 'consumed')),
    decided_by        TEXT NOT NULL DEFAULT '',
    decided_by_id     BIGINT NOT NULL DEFAULT 0,
    decided_via       TEXT NOT NULL DEFAULT '',
    reason            TEXT NOT NULL DEFAULT '',
    decided_at        BIGINT NOT NULL DEFAULT 0,
    consumed_at       BIGINT NOT NULL DEFAULT 0,
    consumed_by       TEXT NOT NULL DEFAULT '',
    expires_at        BIGINT NOT NULL,
    next_poll_at      BIGINT NOT NULL DEFAULT 0,
    poll_etag         TEXT NOT NULL DEFAULT '',
    restore_epoch     BIGINT NOT NULL,
    created_at        BIGINT NOT NULL
);
CREATE UNIQUE INDEX approvals_open ON approvals (session_id, call_key) WHERE state = 'pending';
CREATE INDEX approvals_digest ON approvals (repository_id, issue, digest);
CREATE INDEX approvals_poll ON approvals (next_poll_at) WHERE state = 'pending';
CREATE INDEX approvals_session ON approvals (session_id, ord);
CREATE INDEX approvals_prompt ON approvals (repository_id, prompt_comment_id) WHERE prompt_comment_id <> 0;

CREATE TABLE agents (
    id             TEXT PRIMARY KEY,
    version        TEXT NOT NULL,
    source         TEXT NOT NULL,
    -- The version that seed wrote last; another version is an edit.
    seeded_version TEXT NOT NULL,
    updated_at     BIGINT NOT NULL
);

CREATE TABLE usage_ledger (
    id              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id      TEXT NOT NULL,
    installation_id BIGINT NOT NULL,
    repository_id   BIGINT NOT NULL,
    requester_id    BIGINT NOT NULL,
    agent           TEXT NOT NULL,
    model           TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    input           BIGINT NOT NULL,
    output          BIGINT NOT NULL,
    total           BIGINT NOT NULL,
    cached          BIGINT NOT NULL,
    reasoning       BIGINT NOT NULL,
    cost_micros     BIGINT NOT NULL,
    cost_unknown    BOOLEAN NOT NULL,
    estimated       BOOLEAN NOT NULL,
    created_at      BIGINT NOT NULL
);
CREATE INDEX usage_session ON usage_ledger (session_id);
CREATE INDEX usage_installation ON usage_ledger (installation_id, created_at);
CREATE INDEX usage_requester ON usage_ledger (requester_id, created_at);

-- Each row's hash covers the row and the hash before it.
CREATE TABLE audit_log (
    seq             BIGINT PRIMARY KEY,
    at              BIGINT NOT NULL,
    installation_id BIGINT NOT NULL,
    repository_id   BIGINT NOT NULL,
    session_id      TEXT NOT NULL,
    actor           TEXT NOT NULL,
    actor_id        BIGINT NOT NULL,
    action          TEXT NOT NULL,
    subject         TEXT NOT NULL,
    detail          TEXT NOT NULL,
    previous        TEXT NOT NULL,
    hash            TEXT NOT NULL
);
CREATE INDEX audit_session ON audit_log (session_id);

-- +goose Down
DROP TABLE audit_log;
DROP TABLE usage_ledger;
DROP TABLE agents;
DROP TABLE approvals;
DROP TABLE outbox;
DROP TABLE base_runs;
DROP TABLE artifacts;
DROP TABLE blobs;
DROP TABLE checkpoints;
DROP TABLE messages;
DROP TABLE run_items;
DROP TABLE sessions;
DROP TABLE lanes;
DROP TABLE commands;
DROP TABLE deliveries;
DROP TABLE nodes;
DROP TABLE installations;
DROP TABLE sched;
DROP TABLE server_keys;
DROP TABLE marks;
