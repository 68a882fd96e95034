-- +goose Up

-- Single values of the whole installation: the sweeper's mark, the restore epoch.
CREATE TABLE marks (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
INSERT INTO marks (name, value) VALUES ('sweep', 0), ('restore_epoch', 1);

-- The server's own secrets, one row for each purpose.
CREATE TABLE server_keys (
    name       TEXT PRIMARY KEY,
    key        BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- One row for each kind of work that is handed out. Locking the row makes caps
-- exact and turns fair; turn counts what was handed out.
CREATE TABLE sched (
    name TEXT PRIMARY KEY,
    turn INTEGER NOT NULL
) STRICT;
INSERT INTO sched (name, turn) VALUES ('commands', 0), ('sessions', 0), ('outbox', 0), ('audit', 0);

-- What all nodes share about one installation: when it had its last turn, and
-- its writer queue as thousandths of tokens at a time.
CREATE TABLE installations (
    id            INTEGER PRIMARY KEY,
    command_turn  INTEGER NOT NULL DEFAULT 0,
    session_turn  INTEGER NOT NULL DEFAULT 0,
    outbox_turn   INTEGER NOT NULL DEFAULT 0,
    writer_tokens INTEGER NOT NULL DEFAULT 0,
    writer_at     INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row for each incarnation of a process.
CREATE TABLE nodes (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    draining    INTEGER NOT NULL DEFAULT 0,
    started_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE deliveries (
    guid            TEXT PRIMARY KEY,
    event           TEXT NOT NULL,
    action          TEXT NOT NULL,
    hook_id         INTEGER NOT NULL,
    installation_id INTEGER NOT NULL,
    repository_id   INTEGER NOT NULL,
    body            BLOB NOT NULL,
    source          TEXT NOT NULL,
    received_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX deliveries_received ON deliveries (received_at);

CREATE TABLE commands (
    ord             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    key             TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL,
    delivery_guid   TEXT NOT NULL REFERENCES deliveries (guid) ON DELETE CASCADE,
    installation_id INTEGER NOT NULL REFERENCES installations (id),
    repository_id   INTEGER NOT NULL,
    owner           TEXT NOT NULL,
    repository      TEXT NOT NULL,
    issue           INTEGER NOT NULL,
    comment_id      INTEGER NOT NULL,
    comment_kind    TEXT NOT NULL,
    actor_id        INTEGER NOT NULL,
    actor_login     TEXT NOT NULL,
    verb            TEXT NOT NULL,
    text            TEXT NOT NULL,
    detail          TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('new', 'routed', 'refused')),
    outcome         TEXT NOT NULL DEFAULT '',
    attempts        INTEGER NOT NULL DEFAULT 0,
    node            TEXT REFERENCES nodes (id),
    retry_at        INTEGER NOT NULL DEFAULT 0,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX commands_delivery ON commands (delivery_guid);
CREATE INDEX commands_node ON commands (node) WHERE node IS NOT NULL;
CREATE INDEX commands_new ON commands (repository_id, issue, ord) WHERE state = 'new';

-- One row for each issue that ever had a session; locking it orders the lane.
CREATE TABLE lanes (
    repository_id INTEGER NOT NULL,
    issue         INTEGER NOT NULL,
    PRIMARY KEY (repository_id, issue)
) STRICT;

CREATE TABLE sessions (
    ord               INTEGER PRIMARY KEY AUTOINCREMENT,
    id                TEXT NOT NULL UNIQUE,
    installation_id   INTEGER NOT NULL REFERENCES installations (id),
    repository_id     INTEGER NOT NULL,
    owner             TEXT NOT NULL,
    repository        TEXT NOT NULL,
    issue             INTEGER NOT NULL,
    command_id        TEXT REFERENCES commands (id) ON DELETE SET NULL,
    requester_id      INTEGER NOT NULL,
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
    fence             INTEGER NOT NULL DEFAULT 0,
    next_seq          INTEGER NOT NULL DEFAULT 1,
    wake_at           INTEGER NOT NULL DEFAULT 0,
    woken             INTEGER NOT NULL DEFAULT 0,
    cancel_requested  INTEGER NOT NULL DEFAULT 0,
    cancel_by         TEXT NOT NULL DEFAULT '',
    attempts          INTEGER NOT NULL DEFAULT 0,
    held_at           INTEGER NOT NULL DEFAULT 0,
    active_millis     INTEGER NOT NULL DEFAULT 0,

    active_agent      TEXT NOT NULL DEFAULT '',
    variables         TEXT NOT NULL DEFAULT '{}',
    agent_versions    TEXT NOT NULL DEFAULT '{}',
    usage_requests    INTEGER NOT NULL DEFAULT 0,
    usage_input       INTEGER NOT NULL DEFAULT 0,
    usage_output      INTEGER NOT NULL DEFAULT 0,
    usage_total       INTEGER NOT NULL DEFAULT 0,
    usage_cached      INTEGER NOT NULL DEFAULT 0,
    usage_reasoning   INTEGER NOT NULL DEFAULT 0,
    usage_cost_micros INTEGER NOT NULL DEFAULT 0,
    usage_unknown     INTEGER NOT NULL DEFAULT 0,

    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL DEFAULT 0,
    CHECK ((phase = 'held') = (node IS NOT NULL))
) STRICT;
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
    seq           INTEGER NOT NULL,
    run_id        TEXT NOT NULL,
    parent_run_id TEXT NOT NULL,
    epoch         INTEGER NOT NULL,
    ts            INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    payload       TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT;

CREATE TABLE messages (
    ord        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    command_id TEXT REFERENCES commands (id) ON DELETE SET NULL,
    actor_id   INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    text       TEXT NOT NULL,
    taken_seq  INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_command ON messages (command_id) WHERE command_id IS NOT NULL;
CREATE INDEX messages_waiting ON messages (session_id, ord);

CREATE TABLE checkpoints (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    base       TEXT NOT NULL,
    tree       TEXT NOT NULL,
    changes    TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- File contents, zstd, by git blob id, never shared between installations.
CREATE TABLE blobs (
    installation_id INTEGER NOT NULL,
    id              TEXT NOT NULL,
    content         BLOB NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (installation_id, id)
) STRICT;

CREATE TABLE artifacts (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    body       BLOB NOT NULL,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (session_id, name)
) STRICT;

-- What the configured tests came to on a base commit, once for all sessions. The
-- recipe is a hash of whatever else decides it. While the result is empty, the
-- holder runs them: a session under the fence with which it claimed that.
CREATE TABLE base_runs (
    installation_id INTEGER NOT NULL,
    repository_id   INTEGER NOT NULL,
    commit_id       TEXT NOT NULL,
    recipe          TEXT NOT NULL,
    result          TEXT NOT NULL DEFAULT '',
    holder          TEXT NOT NULL,
    holder_fence    INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (installation_id, repository_id, commit_id, recipe)
) STRICT;
CREATE INDEX base_runs_age ON base_runs (created_at);

CREATE TABLE outbox (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    key             TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL,
    installation_id INTEGER NOT NULL REFERENCES installations (id),
    repository_id   INTEGER NOT NULL,
    owner           TEXT NOT NULL,
    repository      TEXT NOT NULL,
    session_id      TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    command_id      TEXT REFERENCES commands (id) ON DELETE SET NULL,
    call_key        TEXT NOT NULL,
    after_key       TEXT NOT NULL,
    priority        INTEGER NOT NULL,
    payload         TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'done', 'failed', 'unknown', 'superseded')),
    result          TEXT NOT NULL DEFAULT '',
    error           TEXT NOT NULL DEFAULT '',
    attempts        INTEGER NOT NULL DEFAULT 0,
    not_before      INTEGER NOT NULL DEFAULT 0,
    node            TEXT REFERENCES nodes (id),
    version         INTEGER NOT NULL DEFAULT 1,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_pending ON outbox (priority, id) WHERE state = 'pending';
CREATE INDEX outbox_sending ON outbox (priority, id) WHERE state = 'sending';
CREATE INDEX outbox_after ON outbox (after_key) WHERE after_key <> '';
CREATE INDEX outbox_command ON outbox (command_id) WHERE command_id IS NOT NULL;
CREATE INDEX outbox_node ON outbox (node) WHERE node IS NOT NULL;
CREATE INDEX outbox_session ON outbox (session_id, id);

CREATE TABLE approvals (
    ord               INTEGER PRIMARY KEY AUTOINCREMENT,
    id                TEXT NOT NULL UNIQUE,
    session_id        TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    installation_id   INTEGER NOT NULL,
    repository_id     INTEGER NOT NULL,
    owner             TEXT NOT NULL,
    repository        TEXT NOT NULL,
    issue             INTEGER NOT NULL,
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
    requester_id      INTEGER NOT NULL,
    requester_login   TEXT NOT NULL,
    prompt_comment_id INTEGER NOT NULL DEFAULT 0,
    prompt_body_hash  TEXT NOT NULL DEFAULT '',
    check_run_id      INTEGER NOT NULL DEFAULT 0,
    prompted_at       INTEGER NOT NULL DEFAULT 0,
    state             TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'superseded', 'consumed')),
    decided_by        TEXT NOT NULL DEFAULT '',
    decided_by_id     INTEGER NOT NULL DEFAULT 0,
    decided_via       TEXT NOT NULL DEFAULT '',
    reason            TEXT NOT NULL DEFAULT '',
    decided_at        INTEGER NOT NULL DEFAULT 0,
    consumed_at       INTEGER NOT NULL DEFAULT 0,
    consumed_by       TEXT NOT NULL DEFAULT '',
    expires_at        INTEGER NOT NULL,
    next_poll_at      INTEGER NOT NULL DEFAULT 0,
    poll_etag         TEXT NOT NULL DEFAULT '',
    restore_epoch     INTEGER NOT NULL,
    created_at        INTEGER NOT NULL
) STRICT;
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
    updated_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE usage_ledger (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id      TEXT NOT NULL,
    installation_id INTEGER NOT NULL,
    repository_id   INTEGER NOT NULL,
    requester_id    INTEGER NOT NULL,
    agent           TEXT NOT NULL,
    model           TEXT NOT NULL,
    attempt         INTEGER NOT NULL,
    input           INTEGER NOT NULL,
    output          INTEGER NOT NULL,
    total           INTEGER NOT NULL,
    cached          INTEGER NOT NULL,
    reasoning       INTEGER NOT NULL,
    cost_micros     INTEGER NOT NULL,
    cost_unknown    INTEGER NOT NULL,
    estimated       INTEGER NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_session ON usage_ledger (session_id);
CREATE INDEX usage_installation ON usage_ledger (installation_id, created_at);
CREATE INDEX usage_requester ON usage_ledger (requester_id, created_at);

-- Each row's hash covers the row and the hash before it.
CREATE TABLE audit_log (
    seq             INTEGER PRIMARY KEY,
    at              INTEGER NOT NULL,
    installation_id INTEGER NOT NULL,
    repository_id   INTEGER NOT NULL,
    session_id      TEXT NOT NULL,
    actor           TEXT NOT NULL,
    actor_id        INTEGER NOT NULL,
    action          TEXT NOT NULL,
    subject         TEXT NOT NULL,
    detail          TEXT NOT NULL,
    previous        TEXT NOT NULL,
    hash            TEXT NOT NULL
) STRICT;
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
