package repoconfig

// An Author is who a commit is by.
type Author string

// Who a commit is by.
const (
	// AuthorBot is the App's own account.
	AuthorBot Author = "bot"
	// AuthorRequester is whoever asked for the task; the App commits it.
	AuthorRequester Author = "requester"
)

// Commit says whom pushed commits name, and who makes them.
type Commit struct {
	Author Author `json:"author"`
	// CoAuthor names the other of the two, requester or App, as co-author.
	CoAuthor bool `json:"co_author"`
	// SignOff adds the author's Signed-off-by line.
	SignOff bool `json:"sign_off"`
	// Verified has GitHub make the commit, and sign it as the App's. It leaves
	// no other author.
	Verified bool `json:"verified"`
}

// commit lays the file's wishes over the operator's rules.
func (t *tightener) commit(rules Commit, wishes CommitWishes) Commit {
	operator := rules.Verified
	for _, one := range []struct {
		rule *bool
		wish *bool
	}{{&rules.CoAuthor, wishes.CoAuthor}, {&rules.SignOff, wishes.SignOff}, {&rules.Verified, wishes.Verified}} {
		if one.wish != nil {
			*one.rule = *one.wish
		}
	}
	if operator && !rules.Verified {
		rules.Verified = true
		t.fault("commit.verified", "is false, but the operator has GitHub sign every commit; leave it out")
	}
	switch {
	case wishes.Author != AuthorRequester:
	case rules.Verified:
		t.fault("commit.author", "is requester, but GitHub signs only commits that are the App's; the requester stays their co-author")
	default:
		rules.Author = AuthorRequester
	}
	return rules
}
