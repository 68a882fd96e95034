package verdict

import "fmt"

// Summary is the verdict as the end of a sentence that begins with "the tests":
// what became of them on the commit, and what the base says to it. It holds
// words of the host's own alone.
func (v Verdict) Summary() string {
	switch v.Outcome {
	case Passed:
		if v.Base != BasePasses && v.Base != BaseUnknown {
			return "passed on a clean checkout of this commit, while they fail on the base"
		}
		return "passed on a clean checkout of this commit"
	case Flaky:
		return fmt.Sprintf("are flaky: they failed with exit code %d and passed when they were run again", v.ExitCode)
	case TimedOut:
		return "did not end in time: " + v.Detail
	case Limited:
		return "were ended by a limit of the sandbox: " + v.Detail
	case SetupFailed:
		return "were not run, because the setup fails on this commit (" + v.Detail + ")"
	case Broken:
		return "came to no result: " + v.Detail
	}
	times := ""
	if v.Runs > 1 {
		times = " in two runs"
	}
	return fmt.Sprintf("failed with exit code %d%s%s", v.ExitCode, times, v.onBase())
}

// onBase says what the command that fails here does on the base.
func (v Verdict) onBase() string {
	switch v.Base {
	case BasePasses:
		return "; they pass on the base"
	case BaseFails:
		if len(v.New) > 0 {
			return "; the base fails as well, but not in the same tests"
		}
		return "; they fail on the base as well"
	case BaseFlaky:
		return "; on the base they fail in one run and pass in another"
	case BaseStops:
		return "; on the base an earlier command fails"
	}
	return "; what they do on the base is not known"
}

// Method says how failures were told apart, "" where there was nothing to tell.
func (v Verdict) Method() string {
	switch {
	case v.Outcome != Failed:
		return ""
	case v.Base == BaseUnknown:
		return "Which failures are new is not known, because the tests came to no result on the base."
	case v.Base == BaseStops:
		return "Which failures are new is not known, because the base does not get as far as this command."
	case v.ByName:
		return "Told apart by the names that the tests print."
	case v.Base == BasePasses:
		return "Told apart by exit code alone, because the output does not name every test that failed."
	}
	return "By exit code alone: the output does not name every test that failed, so it is not known whether the reason is the same as on the base."
}

// A Group is failures of one kind, under the words for them.
type Group struct {
	Title string
	Tests []string
}

// Groups returns the failures by kind, the worst first, without empty kinds.
// The names are from the output: hostile text, one line each.
func (v Verdict) Groups() []Group {
	var groups []Group
	for _, group := range []Group{
		{"New failures", v.New},
		{"Failures that may be new", v.Unsure},
		{"Flaky, failed in one run and not in another", v.Flaky},
		{"Failures that were there before", v.Old},
	} {
		if len(group.Tests) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}
