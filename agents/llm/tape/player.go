package tape

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say how a tape is played. The zero value plays loosely and at once.
type Options struct {
	// Strict refuses a request that differs from the line's.
	Strict bool
	// Update fills the lines with the requests that come; write [Player.Tape]
	// to a file afterwards. It overrides Strict.
	Update bool
	// Speed makes answers take their recorded time, divided by it: 1 as
	// recorded, 2 twice as fast, 0 at once.
	Speed float64
}

// A Player answers chat completions from a tape. It is an HTTP handler, safe
// for concurrent use.
type Player struct {
	tape    *Tape
	options Options

	mu       sync.Mutex
	sessions map[string]int
	failed   map[failedCall]int
	used     map[*Line]bool
	given    map[givenCall]*Line
}

// A failedCall counts the attempts at a line that fails for some time.
type failedCall struct {
	session string
	line    *Line
}

// A givenCall is a call that was answered from one of several lines for the
// same turn.
type givenCall struct {
	session, agent string
	turn           int
	hash           string
}

// NewPlayer returns a player at the beginning of a tape.
func NewPlayer(tape *Tape, options Options) *Player {
	return &Player{
		tape: tape, options: options,
		sessions: map[string]int{}, failed: map[failedCall]int{}, used: map[*Line]bool{}, given: map[givenCall]*Line{},
	}
}

// Tape returns the tape, with what the updating mode filled in.
func (p *Player) Tape() *Tape { return p.tape }

// Unused returns the lines that nobody asked for yet, in order.
func (p *Player) Unused() []*Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(p.tape.Lines(), func(line *Line) bool { return p.used[line] })
}

// maxRequest bounds a request.
const maxRequest = 64 << 20

// ServeHTTP implements [http.Handler] for POST …/chat/completions.
func (p *Player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		refuse(w, http.StatusNotFound, "a tape answers POST /chat/completions only")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "the request could not be read")
		return
	}
	call, err := readCall(r.Header, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	p.answer(w, r, call)
}

func (p *Player) answer(w http.ResponseWriter, r *http.Request, call call) {
	line, failing, err := p.find(call)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if failing {
		if line.Failure.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(line.Failure.RetryAfter))
		}
		refuse(w, line.Failure.Status, line.Failure.Message)
		return
	}
	answer := answer{line: line, call: call}
	if p.options.Speed > 0 {
		answer.pause = time.Duration(float64(line.LatencyMS) / p.options.Speed * float64(time.Millisecond))
	}
	if call.stream {
		answer.stream(r.Context(), w)
	} else {
		answer.whole(r.Context(), w)
	}
}

// find returns the line that answers a call and whether it fails this time.
func (p *Player) find(call call) (line *Line, failing bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	session := p.session(call)
	line, err = p.match(session, call)
	if err != nil {
		return nil, false, err
	}
	if line == nil {
		return nil, false, p.noLine(session, call)
	}
	if line.Failure != nil {
		counter := failedCall{call.session, line}
		if line.Failure.Times == 0 || p.failed[counter] < line.Failure.Times {
			p.failed[counter]++
			p.used[line] = true
			return line, true, nil
		}
	}
	if p.options.Update || (p.options.Strict && line.RequestHash != "") {
		if err := p.compare(line, call); err != nil {
			return nil, false, err
		}
	}
	p.used[line] = true
	return line, false, nil
}

// compare refuses a request that differs from the line's, or makes it the
// line's when updating.
func (p *Player) compare(line *Line, call call) error {
	request, err := call.request()
	if err != nil {
		return err
	}
	hash := request.hash()
	if p.options.Update {
		line.Request, line.RequestHash = request, hash
		return nil
	}
	if hash != line.RequestHash {
		return fmt.Errorf("the tape does not fit: agent %s, turn %d: %s", call.agent, call.turn, difference(line.Request, request))
	}
	return nil
}

// session returns the ordinal of a session. A session that is new gets the
// first ordinal that nobody has and whose task fits. The user's messages
// repeat the task in every request, so a player that was started again finds
// the same ordinals in whatever order the sessions come back.
func (p *Player) session(call call) int {
	if call.session == "" {
		return 0
	}
	if known, ok := p.sessions[call.session]; ok {
		return known
	}
	taken := map[int]bool{}
	for _, ordinal := range p.sessions {
		taken[ordinal] = true
	}
	tried := map[int]bool{0: true}
	for _, line := range p.tape.Lines() {
		if tried[line.Session] || taken[line.Session] {
			continue
		}
		tried[line.Session] = true
		if call.mentions(line.Task) {
			p.sessions[call.session] = line.Session
			return line.Session
		}
	}
	return 0
}

// match returns the line for a call: of the session before those for all,
// with a fitting "when" before those without.
func (p *Player) match(session int, call call) (*Line, error) {
	var best []*Line
	score := 0
	for _, line := range p.tape.Lines() {
		points := line.fits(session, call)
		if points > score {
			best, score = nil, points
		}
		if points == score && points > 0 {
			best = append(best, line)
		}
	}
	switch len(best) {
	case 0:
		return nil, nil
	case 1:
		return best[0], nil
	default:
		return p.choose(best, call)
	}
}

// fits returns how well a line answers a call, 0 for not at all.
func (l *Line) fits(session int, call call) int {
	if l.Agent != call.agent || l.Turn != call.turn || (l.Session != 0 && l.Session != session) {
		return 0
	}
	if !strings.Contains(call.last, l.When) || (l.Session == 0 && !call.mentions(l.Task)) {
		return 0
	}
	points := 1
	if l.When != "" {
		points++
	}
	if l.Session != 0 {
		points += 2
	}
	return points
}

// choose finds the line of a turn that a session took several times, as it
// does when a task is tried again and turns are counted anew. It is the line
// that was made with this very request; otherwise the first that was not given
// to another request.
func (p *Player) choose(lines []*Line, call call) (*Line, error) {
	request, err := call.request()
	if err != nil {
		return nil, err
	}
	hash := request.hash()
	key := givenCall{call.session, call.agent, call.turn, hash}
	if line, ok := p.given[key]; ok {
		return line, nil
	}
	taken := map[*Line]bool{}
	for other, line := range p.given {
		taken[line] = taken[line] || other.session == call.session
	}
	at := slices.IndexFunc(lines, func(line *Line) bool { return line.RequestHash == hash })
	if at < 0 {
		at = slices.IndexFunc(lines, func(line *Line) bool { return !taken[line] })
	}
	if at < 0 {
		at = len(lines) - 1
	}
	p.given[key] = lines[at]
	return lines[at], nil
}

// noLine says what the tape has instead.
func (p *Player) noLine(session int, call call) error {
	var known []string
	for _, line := range p.tape.Lines() {
		if line.Session == 0 || line.Session == session {
			known = append(known, fmt.Sprintf("%s %d", line.Agent, line.Turn))
		}
	}
	const shown = 30
	if len(known) > shown {
		known = append([]string{"…"}, known[len(known)-shown:]...)
	}
	return fmt.Errorf("the tape has no line for agent %s, turn %d in session %d; it has: %s",
		call.agent, call.turn, session, strings.Join(known, ", "))
}

// A Server is a player on a loopback port.
type Server struct {
	// URL is the base URL for a client.
	URL    string
	server *http.Server
	done   sync.WaitGroup
}

// Serve plays a tape on a free loopback port until Close.
func Serve(player *Player) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the tape finds no free port: %w", err)
	}
	server := &Server{
		URL:    "http://" + listener.Addr().String(),
		server: &http.Server{Handler: player, ReadHeaderTimeout: 10 * time.Second},
	}
	// Serve returns when Close is called, and then only.
	server.done.Go(func() { _ = server.server.Serve(listener) })
	return server, nil
}

// Close stops the server and waits for it.
func (s *Server) Close() error {
	err := s.server.Close()
	s.done.Wait()
	return err
}
