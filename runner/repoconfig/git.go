package repoconfig

// Git says what of git commands in the sandbox see.
type Git string

// What of git commands see.
const (
	// GitNone: no .git at all.
	GitNone Git = "none"
	// GitSynthetic: a made-up one with the base commit and its tags, for builds
	// that ask git for a version. It is made anew for each command.
	GitSynthetic Git = "synthetic"
)
