package main

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"handoff/runner/store"
)

// run serves until ctx is done. A shutdown first lets turns that are under way
// come to their end, for as long as the settings say.
func (b *bot) run(ctx context.Context, listener net.Listener) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { b.nodes(ctx, work) })
	err := b.web.Serve(ctx, listener)
	if ctx.Err() == nil {
		// The server failed by itself: nothing more will come in.
		cancel()
	}
	b.conductor.StopSoftly()
	timer := time.AfterFunc(b.settings.ShutdownGrace, cancel)
	defer timer.Stop()
	group.Wait()
	return err
}

// nodes keeps this process registered as a node and its loops running. A node
// whose lease is lost ends with all that it did, and a new one begins.
func (b *bot) nodes(ctx, work context.Context) {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	for ctx.Err() == nil {
		node, err := b.store.Register(work, name)
		if err != nil {
			b.log.Error("this node cannot register", "error", err)
			sleep(ctx, time.Second)
			continue
		}
		b.serveNode(ctx, work, node)
	}
}

// serveNode runs all loops of one node until ctx is done or its lease is lost.
func (b *bot) serveNode(ctx, work context.Context, node *store.Node) {
	beat, stopBeating := context.WithCancel(work)
	var heart sync.WaitGroup
	heart.Go(func() {
		if err := node.Keep(beat); err != nil {
			b.log.Error("this node has lost its lease", "error", err)
		}
	})
	loops, stopLoops := context.WithCancel(ctx)
	defer stopLoops()
	var group sync.WaitGroup
	group.Go(func() { b.router.Run(loops, node) })
	group.Go(func() { b.poller.Run(loops, node) })
	group.Go(func() { b.sweeper.Run(loops) })
	group.Go(func() { b.watchLease(loops, node, stopLoops) })
	// Sessions are stopped softly and the outbox sends what they leave behind.
	held := make(chan struct{})
	go func() { defer close(held); b.conductor.Run(work, node) }()
	sending, stopSending := context.WithCancel(work)
	group.Go(func() { b.outbox.Run(sending, node) })
	<-held
	stopSending()
	stopLoops()
	group.Wait()
	stopBeating()
	heart.Wait()
	leave, cancel := context.WithTimeout(context.WithoutCancel(work), 5*time.Second)
	defer cancel()
	if err := node.Leave(leave); err != nil && !errors.Is(err, store.ErrNodeExpired) {
		b.log.Warn("this node could not sign off", "error", err)
	}
}

// watchLease stops the loops when the node's lease is lost.
func (b *bot) watchLease(ctx context.Context, node *store.Node, stop context.CancelFunc) {
	select {
	case <-ctx.Done():
	case <-node.Lost():
		stop()
	}
}

func sleep(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}
