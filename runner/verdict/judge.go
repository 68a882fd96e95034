package verdict

import "slices"

// Judge says what the runs come to: one or two of the sealed commit, the second
// after the first had failed, and none to two of its base. Runs of the base
// that did not end by themselves say nothing.
func Judge(sealed, base []Run) Verdict {
	first := sealed[0]
	verdict := Verdict{
		Outcome: first.Outcome, Command: first.Command, ExitCode: first.ExitCode, Detail: first.Detail,
		Runs: len(sealed), Base: stateOf(base, first.Command),
	}
	if first.Outcome != Failed {
		return verdict
	}
	steady := first
	switch second := last(sealed); {
	case len(sealed) == 1 || !second.Conclusive():
		// A second run that did not end says nothing about the first.
		verdict.Runs = 1
	case second.Outcome == Passed:
		verdict.Outcome, verdict.ByName, verdict.Flaky = Flaky, first.Named, first.Failures
		return verdict
	default:
		steady, verdict.Flaky = merge(first, second)
	}
	verdict.Command, verdict.ExitCode = steady.Command, steady.ExitCode
	verdict.Base = stateOf(base, steady.Command)
	verdict.ByName = steady.Named
	verdict.compare(steady, base)
	return verdict
}

func last(runs []Run) Run { return runs[len(runs)-1] }

// merge tells what two failing runs of one commit share from what only one of
// them has. The run that got further decides: the command at which the other
// stopped passed there.
func merge(first, second Run) (steady Run, flaky []string) {
	switch {
	case first.Command > second.Command:
		return first, without(second.Failures, first.Failures)
	case second.Command > first.Command:
		return second, without(first.Failures, second.Failures)
	case !first.Named || !second.Named:
		// Names of one run alone can be compared with nothing.
		first.Failures, first.Named = nil, false
		return first, nil
	}
	steady = first
	here, there := without(first.Failures, second.Failures), without(second.Failures, first.Failures)
	steady.Failures = without(first.Failures, here)
	return steady, slices.Concat(here, there)
}

// without returns the names that are not among the others, in their order.
func without(names, others []string) (left []string) {
	for _, name := range names {
		if !slices.Contains(others, name) {
			left = append(left, name)
		}
	}
	return left
}

// compare sorts the failures that do not go away by what the base does.
func (v *Verdict) compare(steady Run, base []Run) {
	switch v.Base {
	case BasePasses:
		v.New = steady.Failures
		return
	case BaseUnknown, BaseStops:
		v.Unsure = steady.Failures
		return
	}
	there := slices.DeleteFunc(slices.Clone(base), func(run Run) bool {
		return run.Outcome != Failed || run.Command != steady.Command
	})
	if slices.ContainsFunc(there, func(run Run) bool { return !run.Named }) {
		v.ByName, v.Unsure = false, steady.Failures
		return
	}
	reached := count(base, func(run Run) bool { return run.Outcome == Passed || run.Command >= steady.Command })
	for _, name := range steady.Failures {
		switch runs := count(there, func(run Run) bool { return slices.Contains(run.Failures, name) }); runs {
		case 0:
			v.New = append(v.New, name)
		case reached:
			v.Old = append(v.Old, name)
		default:
			v.Flaky = append(v.Flaky, name)
		}
	}
}

func count(runs []Run, is func(Run) bool) (n int) {
	for _, run := range runs {
		if is(run) {
			n++
		}
	}
	return n
}

// stateOf says what the runs of the base tell about one of its commands.
func stateOf(base []Run, command int) Base {
	passes, fails := 0, 0
	for _, run := range base {
		switch {
		case !run.Conclusive():
			return BaseUnknown
		case run.Outcome == Passed || run.Command > command:
			passes++
		case run.Command == command:
			fails++
		}
	}
	switch {
	case passes > 0 && fails > 0:
		return BaseFlaky
	case passes > 0:
		return BasePasses
	case fails > 0:
		return BaseFails
	case len(base) > 0:
		return BaseStops
	}
	return BaseUnknown
}
