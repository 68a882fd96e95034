package intake

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"handoff/runner/store"
)

// How many commands are listened to, per node. A person can type a dozen in a
// row and one every few seconds; nobody can make the bot busy for others.
const (
	personBurst, personEvery         = 12, 6 * time.Second
	issueBurst, issueEvery           = 20, 4 * time.Second
	repositoryBurst, repositoryEvery = 100, time.Second
	// bucketsKept bounds the memory; full buckets are dropped first.
	bucketsKept = 10_000
)

// bucketName names whose commands are counted: a person within an
// installation, an issue, or a whole repository.
type bucketName struct {
	kind   string
	id     int64
	number int64
}

// A limiter counts commands in token buckets. It lives in memory: a restart
// forgives, and every node counts for itself.
type limiter struct {
	mu      sync.Mutex
	buckets map[bucketName]*rate.Limiter
}

func newLimiter() *limiter { return &limiter{buckets: make(map[bucketName]*rate.Limiter)} }

// allow counts a command. A command that is tried again was counted before.
func (l *limiter) allow(now time.Time, command store.Command) bool {
	if command.Attempts > 1 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buckets) >= bucketsKept {
		l.dropFull(now)
	}
	// The person first: whoever is over the limit uses up nobody else's.
	return l.take(now, bucketName{"person", command.InstallationID, command.ActorID}, personEvery, personBurst) &&
		l.take(now, bucketName{"issue", command.RepositoryID, int64(command.Issue)}, issueEvery, issueBurst) &&
		l.take(now, bucketName{"repository", command.RepositoryID, 0}, repositoryEvery, repositoryBurst)
}

func (l *limiter) take(now time.Time, name bucketName, every time.Duration, burst int) bool {
	bucket := l.buckets[name]
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Every(every), burst)
		l.buckets[name] = bucket
	}
	return bucket.AllowN(now, 1)
}

// dropFull forgets who has been quiet long enough to have a full bucket, and
// everybody when nobody was.
func (l *limiter) dropFull(now time.Time) {
	for name, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(l.buckets, name)
		}
	}
	if len(l.buckets) >= bucketsKept {
		clear(l.buckets)
	}
}
