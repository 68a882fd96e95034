package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func passed() Run { return Run{Outcome: Passed, Command: 1} }

func failed(command int, names ...string) Run {
	return Run{Outcome: Failed, Command: command, ExitCode: 1, Failures: names, Named: len(names) > 0}
}

func ended(outcome Outcome) Run { return Run{Outcome: outcome, Detail: "why"} }

func TestFailuresAreToldApart(t *testing.T) {
	for what, test := range map[string]struct {
		sealed, base []Run
		want         Verdict
	}{
		"all pass": {
			[]Run{passed()}, nil,
			Verdict{Outcome: Passed, Command: 1, Runs: 1, Base: BaseUnknown},
		},
		"a failure that the base does not have": {
			[]Run{failed(0, "a"), failed(0, "a")}, []Run{passed()},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BasePasses, New: []string{"a"}},
		},
		"one of each": {
			[]Run{failed(0, "new", "old", "now"), failed(0, "old", "new", "then")}, []Run{failed(0, "old"), failed(0, "old")},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BaseFails, New: []string{"new"}, Old: []string{"old"}, Flaky: []string{"now", "then"}},
		},
		"a second run that passes": {
			[]Run{failed(0, "a"), passed()}, nil,
			Verdict{Outcome: Flaky, ExitCode: 1, Runs: 2, ByName: true, Base: BaseUnknown, Flaky: []string{"a"}},
		},
		"a second run that fails elsewhere": {
			[]Run{failed(0, "a"), failed(0, "b")}, []Run{passed()},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BasePasses, Flaky: []string{"a", "b"}},
		},
		"a second run that gets further": {
			[]Run{failed(0, "a"), failed(1, "b")}, []Run{passed()},
			Verdict{Outcome: Failed, Command: 1, ExitCode: 1, Runs: 2, ByName: true, Base: BasePasses, New: []string{"b"}, Flaky: []string{"a"}},
		},
		"a second run that gets less far": {
			[]Run{failed(1, "b"), failed(0, "a")}, []Run{passed()},
			Verdict{Outcome: Failed, Command: 1, ExitCode: 1, Runs: 2, ByName: true, Base: BasePasses, New: []string{"b"}, Flaky: []string{"a"}},
		},
		"a second run that does not end": {
			[]Run{failed(0, "a"), ended(TimedOut)}, []Run{passed()},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 1, ByName: true, Base: BasePasses, New: []string{"a"}},
		},
		"a test that is flaky on the base": {
			[]Run{failed(0, "a", "b"), failed(0, "a", "b")}, []Run{failed(0, "a"), passed()},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BaseFlaky, New: []string{"b"}, Flaky: []string{"a"}},
		},
		"a base that fails before": {
			[]Run{failed(1, "a"), failed(1, "a")}, []Run{failed(0, "x"), failed(0, "x")},
			Verdict{Outcome: Failed, Command: 1, ExitCode: 1, Runs: 2, ByName: true, Base: BaseStops, Unsure: []string{"a"}},
		},
		"a base that fails later": {
			[]Run{failed(0, "a"), failed(0, "a")}, []Run{failed(1, "a"), failed(1, "a")},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BasePasses, New: []string{"a"}},
		},
		"a base that reached the command once": {
			[]Run{failed(1, "a"), failed(1, "a")}, []Run{failed(1, "a"), failed(0, "x")},
			Verdict{Outcome: Failed, Command: 1, ExitCode: 1, Runs: 2, ByName: true, Base: BaseFails, Old: []string{"a"}},
		},
		"a base that did not end": {
			[]Run{failed(0, "a"), failed(0, "a")}, []Run{ended(Limited)},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BaseUnknown, Unsure: []string{"a"}},
		},
		"a base that was never run": {
			[]Run{failed(0, "a"), failed(0, "a")}, nil,
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, ByName: true, Base: BaseUnknown, Unsure: []string{"a"}},
		},
		"no names, and the base passes": {
			[]Run{failed(0), failed(0)}, []Run{passed()},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, Base: BasePasses},
		},
		"no names, and the base fails": {
			[]Run{failed(0), failed(0)}, []Run{failed(0), failed(0)},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, Base: BaseFails},
		},
		"names here and none on the base": {
			[]Run{failed(0, "a"), failed(0, "a")}, []Run{failed(0), failed(0)},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, Base: BaseFails, Unsure: []string{"a"}},
		},
		"names in one run alone": {
			[]Run{failed(0, "a"), failed(0)}, []Run{passed()},
			Verdict{Outcome: Failed, ExitCode: 1, Runs: 2, Base: BasePasses},
		},
		"no time": {
			[]Run{ended(TimedOut)}, []Run{passed()},
			Verdict{Outcome: TimedOut, Detail: "why", Runs: 1, Base: BasePasses},
		},
		"no setup": {
			[]Run{ended(SetupFailed)}, nil,
			Verdict{Outcome: SetupFailed, Detail: "why", Runs: 1, Base: BaseUnknown},
		},
	} {
		if diff := cmp.Diff(test.want, Judge(test.sealed, test.base)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
}

// anyRun draws a run whose failures are few, so that runs share them.
func anyRun(t *rapid.T, label string) Run {
	run := Run{
		Outcome: rapid.SampledFrom([]Outcome{Passed, Failed, Failed, Failed, TimedOut, Limited, SetupFailed, Broken}).Draw(t, label),
		Command: rapid.IntRange(0, 2).Draw(t, label+" command"),
	}
	if run.Outcome == Failed {
		run.Failures = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, label+" failures")
		run.Named = len(run.Failures) > 0 && rapid.Bool().Draw(t, label+" named")
	}
	return run
}

// Whatever the runs are: no failure is in two groups, nothing is made up, what
// is called old fails on the base as well, and what passes nowhere is not lost.
func TestAnyRunsAreJudgedWithCare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sealed := []Run{anyRun(t, "first")}
		if sealed[0].Outcome == Failed && rapid.Bool().Draw(t, "again") {
			sealed = append(sealed, anyRun(t, "second"))
		}
		var base []Run
		for range rapid.IntRange(0, 2).Draw(t, "base runs") {
			base = append(base, anyRun(t, "base"))
		}
		verdict := Judge(sealed, base)

		var all []string
		for _, group := range verdict.Groups() {
			all = append(all, group.Tests...)
		}
		for i, name := range all {
			if slices.Contains(all[:i], name) {
				t.Fatalf("%s is in two groups: %+v", name, verdict)
			}
			if !slices.ContainsFunc(sealed, func(run Run) bool { return slices.Contains(run.Failures, name) }) {
				t.Fatalf("%s is made up: %+v", name, verdict)
			}
		}
		for _, name := range verdict.Old {
			if !slices.ContainsFunc(base, func(run Run) bool { return slices.Contains(run.Failures, name) }) {
				t.Fatalf("%s does not fail on the base: %+v", name, verdict)
			}
		}
		if verdict.Outcome == Passed && sealed[0].Outcome != Passed || verdict.Outcome == Failed && len(sealed) == 2 && sealed[1].Outcome == Passed {
			t.Fatalf("%+v for %+v", verdict, sealed)
		}
		if verdict.ByName && verdict.Outcome == Failed {
			for _, name := range sealed[0].Failures {
				if !slices.Contains(all, name) {
					t.Fatalf("%s is lost: %+v", name, verdict)
				}
			}
		}
		if verdict.Summary() == "" || strings.Contains(verdict.Summary(), "\n") {
			t.Fatalf("%+v says %q", verdict, verdict.Summary())
		}
	})
}

func TestAVerdictIsPutIntoWords(t *testing.T) {
	two := func(run Run) []Run { return []Run{run, run} }
	for _, test := range []struct {
		sealed, base    []Run
		summary, method string
	}{
		{[]Run{passed()}, nil, "passed on a clean checkout of this commit", ""},
		{[]Run{passed()}, []Run{passed()}, "passed on a clean checkout of this commit", ""},
		{[]Run{passed()}, []Run{failed(0, "a")}, "passed on a clean checkout of this commit, while they fail on the base", ""},
		{[]Run{failed(0, "a"), passed()}, nil, "are flaky: they failed with exit code 1 and passed when they were run again", ""},
		{two(failed(0, "a")), []Run{passed()}, "failed with exit code 1 in two runs; they pass on the base", "Told apart by the names that the tests print."},
		{two(failed(0, "a")), two(failed(0, "a")), "failed with exit code 1 in two runs; they fail on the base as well", "Told apart by the names that the tests print."},
		{two(failed(0, "a", "b")), two(failed(0, "a")), "failed with exit code 1 in two runs; the base fails as well, but not in the same tests", "Told apart by the names that the tests print."},
		{two(failed(0)), []Run{passed()}, "failed with exit code 1 in two runs; they pass on the base", "Told apart by exit code alone, because the output does not name every test that failed."},
		{two(failed(0)), two(failed(0)), "failed with exit code 1 in two runs; they fail on the base as well", "By exit code alone: the output does not name every test that failed, so it is not known whether the reason is the same as on the base."},
		{two(failed(0, "a")), []Run{failed(0, "a"), passed()}, "failed with exit code 1 in two runs; on the base they fail in one run and pass in another", "Told apart by the names that the tests print."},
		{two(failed(1, "a")), two(failed(0)), "failed with exit code 1 in two runs; on the base an earlier command fails", "Which failures are new is not known, because the base does not get as far as this command."},
		{[]Run{failed(0, "a"), ended(TimedOut)}, nil, "failed with exit code 1; what they do on the base is not known", "Which failures are new is not known, because the tests came to no result on the base."},
		{[]Run{ended(TimedOut)}, nil, "did not end in time: why", ""},
		{[]Run{ended(Limited)}, nil, "were ended by a limit of the sandbox: why", ""},
		{[]Run{ended(SetupFailed)}, nil, "were not run, because the setup fails on this commit (why)", ""},
		{[]Run{ended(Broken)}, nil, "came to no result: why", ""},
	} {
		verdict := Judge(test.sealed, test.base)
		if verdict.Summary() != test.summary || verdict.Method() != test.method {
			t.Errorf("%+v:\n%q\n%q", verdict, verdict.Summary(), verdict.Method())
		}
	}
}
