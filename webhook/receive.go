package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"handoff/runner/store"
)

// MaxBody is GitHub's own limit for a payload.
const MaxBody = 25 << 20

// bodiesAtOnce bounds the memory for bodies of all requests together: they
// must be held before their signature can be checked.
const bodiesAtOnce = 4 * MaxBody

// bodyTimeout is how long 25 MB may take to arrive. GitHub gives up after ten
// seconds; a proxy in between may buffer for longer.
const bodyTimeout = 30 * time.Second

// storeTimeout bounds the transaction; GitHub waits for ten seconds.
const storeTimeout = 8 * time.Second

// receive takes one webhook request through the steps that the package's
// comment lists.
func (s *Server) receive(c echo.Context) error {
	request := c.Request()
	if kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return s.refuse(c, http.StatusUnsupportedMediaType, "send application/json: set the App's webhook content type to it")
	}
	if request.ContentLength > MaxBody {
		return s.refuse(c, http.StatusRequestEntityTooLarge, "the payload is larger than 25 MB")
	}
	signature, ok := signatureOf(request.Header)
	if !ok {
		return s.refuse(c, http.StatusUnauthorized, "the X-Hub-Signature-256 header is missing or malformed: give the App a webhook secret")
	}
	body, release, err := s.read(c)
	defer release()
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok && tooLarge != nil {
		return s.refuse(c, http.StatusRequestEntityTooLarge, "the payload is larger than 25 MB")
	}
	if errors.Is(err, errBusy) {
		return s.refuse(c, http.StatusServiceUnavailable, err.Error())
	}
	if err != nil {
		return s.refuse(c, http.StatusBadRequest, "the payload ended too early")
	}
	if !s.signedBy(body, signature) {
		return s.refuse(c, http.StatusUnauthorized, "the signature does not fit: the App's webhook secret is another one than GITHUB_WEBHOOK_SECRET")
	}
	hook, _ := strconv.ParseInt(request.Header.Get("X-GitHub-Hook-ID"), 10, 64)
	received := Received{
		GUID: request.Header.Get("X-GitHub-Delivery"), Event: request.Header.Get("X-GitHub-Event"),
		HookID: hook, Body: body, Source: "webhook", At: time.Now(),
	}
	if !isGUID(received.GUID) || received.Event == "" {
		return s.refuse(c, http.StatusBadRequest, "the X-GitHub-Delivery or X-GitHub-Event header is missing")
	}
	return s.answer(c, received)
}

// answer stores the event and says what became of it.
func (s *Server) answer(c echo.Context, received Received) error {
	verdict, err := s.Deliver(c.Request().Context(), received)
	switch {
	case verdict == VerdictMalformed:
		return s.refuse(c, http.StatusBadRequest, "the payload is not JSON of the event that its header names")
	case err != nil:
		s.logger.ErrorContext(c.Request().Context(), "could not store a delivery; GitHub keeps it for the sweeper",
			"delivery", received.GUID, "event", received.Event, "error", err)
		c.Response().Header().Set("Retry-After", "60")
		return s.refuse(c, http.StatusServiceUnavailable, "the delivery could not be stored; it will be fetched again")
	}
	s.observe(string(verdict))
	return c.JSON(http.StatusAccepted, map[string]string{"status": string(verdict)})
}

// Deliver stores an event and the command that it is, in one transaction. It
// is what a webhook request ends with, and the way in for events that were
// fetched from GitHub's log instead. The caller vouches for the event: no
// signature is checked here. An error means that nothing was stored and that
// the same event may be stored later.
func (s *Server) Deliver(ctx context.Context, received Received) (Verdict, error) {
	delivery, command, verdict, err := sort(s.appID, received)
	if err != nil {
		s.logger.WarnContext(ctx, "a delivery cannot be read", "delivery", received.GUID, "event", received.Event, "source", received.Source, "error", err)
		return VerdictMalformed, nil
	}
	if verdict != VerdictStored {
		return verdict, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := s.inbox.PutDelivery(ctx, delivery, []store.Command{command})
	switch {
	case err != nil:
		return "", err
	case !stored:
		return VerdictDuplicate, nil
	}
	s.logger.InfoContext(ctx, "stored a delivery", "delivery", received.GUID, "event", received.Event, "action", delivery.Action,
		"repository", delivery.RepositoryID, "issue", command.Issue, "verb", command.Verb, "actor", command.ActorID, "source", received.Source)
	return VerdictStored, nil
}

// refuse answers with a status and a sentence for whoever reads the App's
// delivery log.
func (s *Server) refuse(c echo.Context, status int, message string) error {
	s.observe("refused_" + strconv.Itoa(status))
	// Unread bytes of a refused body are not worth waiting for.
	c.Response().Header().Set("Connection", "close")
	return c.JSON(status, map[string]string{"message": message})
}

// errBusy says that too many large bodies are being read.
var errBusy = errors.New("too many large payloads at once; it will be fetched again")

// read reads the body within the limits. Release must be called when the body
// is no longer needed.
func (s *Server) read(c echo.Context) (body []byte, release func(), err error) {
	request := c.Request()
	size := request.ContentLength
	if size < 0 {
		size = MaxBody
	}
	wait, cancel := context.WithTimeout(request.Context(), storeTimeout)
	defer cancel()
	if s.bodies.Acquire(wait, size) != nil {
		return nil, func() {}, errBusy
	}
	// A connection that cannot have a deadline is one of a test's recorder.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err = io.ReadAll(http.MaxBytesReader(c.Response(), request.Body, MaxBody))
	return body, func() { s.bodies.Release(size) }, err
}

// signatureOf returns the SHA-256 signature of a request. The older SHA-1
// header is not looked at.
func signatureOf(header http.Header) ([]byte, bool) {
	written, ok := strings.CutPrefix(header.Get("X-Hub-Signature-256"), "sha256=")
	if !ok || len(written) != hex.EncodedLen(sha256.Size) {
		return nil, false
	}
	signature, err := hex.DecodeString(written)
	return signature, err == nil
}

// signedBy says whether one of the secrets signed the body. All are tried, so
// that the time does not tell which.
func (s *Server) signedBy(body, signature []byte) bool {
	fits := false
	for _, secret := range s.secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		fits = hmac.Equal(mac.Sum(nil), signature) || fits
	}
	return fits
}

// isGUID says whether a delivery's id has the characters of one.
func isGUID(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-')
	})
}
