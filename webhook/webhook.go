// Package webhook is the front door: it takes what GitHub sends, makes sure
// that it comes from GitHub, and stores what matters before it says thank you.
//
// The idea is that an answer of 202 is a promise. GitHub sends every event
// once and never again by itself, so whatever was acknowledged must survive
// kill -9 and a power cut, and whatever was not can be fetched again from
// GitHub's delivery log (package runner/intake does that, through
// [Server.Deliver]). Nothing is done here but to sort and to store; what a
// command means is decided later, on any node.
//
// One request goes through these steps, and the first that fails answers it:
//
//	method 405 · content type 415 · size 413 · signature over the raw bytes 401
//	event and action on the list, otherwise 202 ignored · JSON 400
//	bots, our own App, edits and comments that are no command: 202 ignored
//	one transaction for the delivery and its command: 202, or 503 when it failed
//
// The parts, one file each: server.go is the Echo server and its life,
// receive.go the steps above, sort.go what an event becomes, payload.go the
// few fields of GitHub's payloads that are read, command.go what counts as a
// command and what it says, words.go which parts of it are somebody else's
// words.
//
// It promises that nothing panics on input, that a body is bounded before it is
// read, that the memory for bodies is bounded over all requests, and that the
// same event is stored once, however often it comes.
package webhook

import (
	"context"

	"handoff/runner/store"
)

// An Inbox keeps deliveries. Package runner/store implements it.
//
// Contract: PutDelivery writes the delivery and its commands in one
// transaction that is durable when it returns nil. A GUID that is known gives
// stored=false and changes nothing; a command whose Key is known is left out.
// It is safe for concurrent use.
type Inbox interface {
	PutDelivery(ctx context.Context, delivery store.Delivery, commands []store.Command) (stored bool, err error)
}
