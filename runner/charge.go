package runner

import "handoff/agents"

// charge adds usage to the run, to every run that it is nested in and to the
// session.
func (s *State) charge(run *RunState, usage agents.Usage) {
	s.Usage.Add(usage)
	for run != nil {
		run.Usage.Add(usage)
		run = s.Runs[run.Parent]
	}
}

// lost is what a request whose answer was never recorded is charged: its
// estimated input (rule R71).
func (run *RunState) lost() agents.Usage {
	if run.asked == nil {
		return agents.Usage{}
	}
	estimate := run.asked.Estimate
	return agents.Usage{
		Requests: 1, Input: estimate, Total: estimate,
		Entries: []agents.UsageEntry{{
			Attempt: 1, Agent: run.asked.Agent, Model: run.asked.Model, Input: estimate, Total: estimate, Estimated: true,
		}},
	}
}

// costsNothing says that the end brings no usage of its own: an answer that
// was being waited for is then charged by its estimate.
func (p runEnded) costsNothing() bool {
	return p.Usage.Requests == 0 && len(p.Usage.Entries) == 0
}

// calibrate learns from a reported number of input tokens how many a byte is.
// Absurd numbers are not believed.
func (run *RunState) calibrate(usage agents.Usage) {
	if run.asked == nil || run.asked.Bytes == 0 || len(usage.Entries) == 0 {
		return
	}
	last := usage.Entries[len(usage.Entries)-1]
	if ratio := float64(last.Input) / float64(run.asked.Bytes); !last.Estimated && ratio > 0.05 && ratio < 2 {
		run.perByte = ratio
	}
}

func (s *State) chargeLost(run *RunState) {
	s.charge(run, run.lost())
	run.asked = nil
}
