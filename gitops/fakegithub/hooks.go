package fakegithub

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// hookTimeout is how long GitHub waits for a webhook's receiver.
// Source: https://docs.github.com/webhooks/using-webhooks/handling-webhook-deliveries
const hookTimeout = 10 * time.Second

// delivery is one webhook: queued, sent once, and then part of the delivery log.
type delivery struct {
	id           int64
	guid         string
	app          *app
	event        string
	action       string
	installation int64
	repository   int64
	redelivery   bool
	payload      []byte

	// Known once it has been sent.
	delivered       time.Time
	duration        time.Duration
	url             string
	status          string
	statusCode      int
	requestHeaders  map[string]string
	responseHeaders map[string]string
	responseBody    string
}

func newGUID() string { return uuid.NewString() }

// hookSender sends each App's webhooks one after the other, in the order in which things happened.
type hookSender struct {
	server  *Server
	client  *http.Client
	context context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	started bool
	queues  map[*app]*hookQueue
	pending int
	idle    chan struct{} // closed while nothing is pending
}

type hookQueue struct {
	waiting []*delivery
	running bool
}

func newHookSender(s *Server) *hookSender {
	ctx, cancel := context.WithCancel(context.Background())
	idle := make(chan struct{})
	close(idle)
	return &hookSender{
		server: s, context: ctx, cancel: cancel, queues: map[*app]*hookQueue{}, idle: idle,
		client: &http.Client{
			Timeout:       s.options.HookTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// enqueue adds a delivery; an App without a webhook address is told nothing.
func (h *hookSender) enqueue(d *delivery) {
	if d.app.hookURL == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	queue := h.queues[d.app]
	if queue == nil {
		queue = &hookQueue{}
		h.queues[d.app] = queue
	}
	queue.waiting = append(queue.waiting, d)
	if h.pending++; h.pending == 1 {
		h.idle = make(chan struct{})
	}
	h.run(queue)
}

// run starts a worker for the queue unless one is at work. h.mu must be held.
func (h *hookSender) run(queue *hookQueue) {
	if !h.started || queue.running || len(queue.waiting) == 0 || h.context.Err() != nil {
		return
	}
	queue.running = true
	h.workers.Go(func() { h.work(queue) })
}

func (h *hookSender) work(queue *hookQueue) {
	for {
		h.mu.Lock()
		if len(queue.waiting) == 0 || h.context.Err() != nil {
			queue.running = false
			h.mu.Unlock()
			return
		}
		d := queue.waiting[0]
		queue.waiting = queue.waiting[1:]
		h.mu.Unlock()
		h.send(d)
		h.finished(1)
	}
}

func (h *hookSender) finished(count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending -= count; h.pending == 0 {
		close(h.idle)
	}
}

// drop forgets what waits to be sent.
func (h *hookSender) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	dropped := 0
	for _, queue := range h.queues {
		dropped += len(queue.waiting)
		queue.waiting = nil
	}
	if h.pending -= dropped; dropped > 0 && h.pending == 0 {
		close(h.idle)
	}
}

func (h *hookSender) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = true
	for _, queue := range h.queues {
		h.run(queue)
	}
}

func (h *hookSender) stop() {
	h.cancel()
	h.workers.Wait()
	h.client.CloseIdleConnections()
}

func (h *hookSender) waitIdle(ctx context.Context) error {
	h.mu.Lock()
	idle := h.idle
	h.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send makes the one attempt and writes it into the log.
func (h *hookSender) send(d *delivery) {
	s := h.server
	s.mu.Lock()
	d.url, d.delivered = d.app.hookURL, s.Now()
	d.requestHeaders = hookHeaders(d)
	s.mu.Unlock()
	begun := time.Now()
	h.attempt(d)
	d.duration = time.Since(begun)
	s.mu.Lock()
	if s.world.apps[d.app.id] == d.app { // not of a world that was reset meanwhile
		s.world.deliveries = append(s.world.deliveries, d)
	}
	s.mu.Unlock()
	s.log.Debug("webhook", "event", d.event, "action", d.action, "status", d.status)
}

func (h *hookSender) attempt(d *delivery) {
	request, err := http.NewRequestWithContext(h.context, http.MethodPost, d.url, bytes.NewReader(d.payload))
	if err != nil {
		d.status = "failed to connect to host"
		return
	}
	for name, value := range d.requestHeaders {
		request.Header.Set(name, value)
	}
	response, err := h.client.Do(request)
	if err != nil {
		d.status = "failed to connect to host"
		if failure, ok := errors.AsType[*url.Error](err); ok && failure.Timeout() {
			d.status = "timed out"
		}
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, keptResponse)) // what came before a break is kept
	d.statusCode, d.responseBody = response.StatusCode, string(body)
	d.responseHeaders = map[string]string{}
	for name := range response.Header {
		d.responseHeaders[name] = response.Header.Get(name)
	}
	d.status = statusText(response.StatusCode)
	if response.StatusCode < 300 {
		d.status = "OK"
	}
}

// keptResponse bounds how much of a receiver's answer the log keeps.
const keptResponse = 25 << 10

// hookHeaders are GitHub's, with both signatures over the exact body.
func hookHeaders(d *delivery) map[string]string {
	headers := map[string]string{
		"Content-Type":                           "application/json",
		"Accept":                                 "*/*",
		"User-Agent":                             "GitHub-Hookshot/fake",
		"X-GitHub-Delivery":                      d.guid,
		"X-GitHub-Event":                         d.event,
		"X-GitHub-Hook-ID":                       strconv.FormatInt(d.app.hookID, 10),
		"X-GitHub-Hook-Installation-Target-ID":   strconv.FormatInt(d.app.id, 10),
		"X-GitHub-Hook-Installation-Target-Type": "integration",
	}
	if d.app.hookSecret != "" {
		headers["X-Hub-Signature"] = "sha1=" + sign(sha1.New, d.app.hookSecret, d.payload)
		headers["X-Hub-Signature-256"] = "sha256=" + sign(sha256.New, d.app.hookSecret, d.payload)
	}
	return headers
}

func sign(algorithm func() hash.Hash, secret string, body []byte) string {
	mac := hmac.New(algorithm, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// redeliver queues a delivery again, with the same GUID and the same body.
func (s *Server) redeliver(d *delivery) {
	s.hooks.enqueue(&delivery{id: s.world.nextID(), guid: d.guid, app: d.app, event: d.event, action: d.action,
		installation: d.installation, repository: d.repository, redelivery: true, payload: d.payload})
}
