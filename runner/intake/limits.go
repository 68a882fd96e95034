package intake

import (
	"slices"
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

// What is counted.
const (
	perPerson     = "person"
	perIssue      = "issue"
	perRepository = "repository"
)

// bucketName names whose commands are counted.
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

// arrived counts a command of anybody, before GitHub is asked anything about
// it, and returns whose limit it exceeds, "" for none. The person counts
// first: whoever is over the limit uses up nobody else's. A command that is
// tried again was counted before.
func (l *limiter) arrived(now time.Time, command store.Command) (exceeded string) {
	if command.Attempts > 1 {
		return ""
	}
	switch {
	case !l.take(now, bucketName{perPerson, command.InstallationID, command.ActorID}, personEvery, personBurst):
		return perPerson
	case !l.take(now, bucketName{perRepository, command.RepositoryID, 0}, repositoryEvery, repositoryBurst):
		return perRepository
	}
	return ""
}

// allowed counts a command of somebody who has the role. Strangers do not use
// up an issue's limit, and nothing stands between a maintainer and a stop or a
// decision.
func (l *limiter) allowed(now time.Time, command store.Command) (exceeded string) {
	switch {
	case command.Attempts > 1, slices.Contains([]string{"stop", "approve", "reject"}, command.Verb):
		return ""
	case !l.take(now, bucketName{perIssue, command.RepositoryID, int64(command.Issue)}, issueEvery, issueBurst):
		return perIssue
	}
	return ""
}

func (l *limiter) take(now time.Time, name bucketName, every time.Duration, burst int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buckets) >= bucketsKept {
		l.dropFull(now)
	}
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
