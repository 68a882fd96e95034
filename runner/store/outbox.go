package store

import (
	"context"
	"encoding/json"
	"time"

	"handoff/runner"
)

// The writer queue of an installation: one token bucket shared by all nodes.
// GitHub allows 80 content creations a minute, the web's own included.
const (
	WriterBurst           = 10
	WriterRefillPerSecond = 1
	// WriterReserved tokens are kept for effects of priority 0.
	WriterReserved = 3
)

// PutEffect puts an effect into the outbox that a command owns, or nobody. It
// reports stored=false for a key that exists with the same content, and fails
// with [ErrDuplicate] for one with another content. An effect whose After has
// failed already is stored as failed.
func (s *Store) PutEffect(ctx context.Context, effect Effect) (stored bool, err error) { panic("soon") }

// PutLatest puts an effect whose newest payload alone matters, such as the text
// of the progress comment. While the effect with that key is pending the
// payload is replaced; when it is being sent or was sent, it becomes pending
// again after that. Version counts the replacements. A payload equal to the
// last one changes nothing. NotBefore keeps the later of the two.
func (s *Store) PutLatest(ctx context.Context, effect Effect) error { panic("soon") }

// ClaimEffect gives the node the next effect to send, or [ErrNone]: first those
// whose sender died or gave up without knowing (reconcile=true: look at GitHub
// before anything is sent again), then pending ones in the order of Priority,
// installations taking turns. It honours After, NotBefore and the writer queue
// of the installation. The claim is the fence: State is sending, Node the node,
// and Attempts its number.
//
// The claim renews the node's lease, so that a request of at most
// [CreationTimeout] that starts now ends before anybody else may claim it.
func (s *Store) ClaimEffect(ctx context.Context, node *Node) (effect Effect, reconcile bool, err error) {
	panic("soon")
}

// An EffectEnd is what became of a claimed effect: everything in it is one
// transaction.
type EffectEnd struct {
	// State is done, failed, unknown or superseded; pending to try again at
	// RetryAt when surely nothing was sent; sending to look again at RetryAt
	// when that is not sure.
	State   EffectState
	Result  json.RawMessage
	Error   string
	RetryAt time.Time
	// Records go to the journal of the effect's session: the outcome of its
	// call. They are written whoever holds the session, and also after its end.
	Records []runner.Record
	// WakeSession wakes the session; SessionState, when not empty, is what it
	// shows from now on unless it has ended.
	WakeSession  bool
	SessionState SessionState
	// ConsumeApproval is the approval that this effect used up.
	ConsumeApproval string
	// Prompt, when set, says where an approval's prompt appeared.
	Prompt *ApprovalPrompt
}

// EndEffect closes the claim. It fails with [runner.ErrFenced] when another
// node has claimed the effect since; nothing is written then. The claim alone
// is checked: an outcome may be recorded late as long as nobody else acts.
//
// Records get the session's next numbers and its current fence as epoch, in
// order with those of whoever holds it. When an effect is not done for good,
// pending effects that come after it end the same way. When a newer payload
// came while a coalesced effect was sent, it is pending again.
func (s *Store) EndEffect(ctx context.Context, node *Node, effect Effect, end EffectEnd) error {
	panic("soon")
}

// EffectByKey returns the effect with that key, or [ErrNotFound].
func (s *Store) EffectByKey(ctx context.Context, key string) (Effect, error) { panic("soon") }

// EffectsOfSession returns a session's effects, oldest first.
func (s *Store) EffectsOfSession(ctx context.Context, sessionID string) ([]Effect, error) {
	panic("soon")
}
