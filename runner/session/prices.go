package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"handoff/agents"
)

// priced is a model that knows whether its calls have a known price.
type priced interface {
	Priced(model agents.ModelRef) bool
}

// noticePrices says where the limit on cost cannot hold.
func (h *hold) noticePrices() {
	model, ok := h.Model.(priced)
	if !ok {
		return
	}
	var unpriced []string
	for _, name := range slices.Sorted(maps.Keys(h.crew)) {
		if agent := h.crew[name]; !model.Priced(agent.Model) {
			unpriced = append(unpriced, agent.Name)
		}
	}
	if len(unpriced) > 0 {
		h.notices = append(h.notices, "What the model costs is not known ("+strings.Join(unpriced, ", ")+"), so the limit on cost cannot hold; the limit on tokens does")
	}
}

// chooseModel returns the model of an agent: the repository's wish, or the
// operator's. A repository may not wish for one whose price is not known where
// that of the operator's is, because then no limit on cost would hold.
func (h *hold) chooseModel(agent agents.Agent) agents.ModelRef {
	wished := agent.Model
	wished.ID = h.config.Models[agent.ID]
	if wished.ID == "" {
		return agent.Model
	}
	if model, ok := h.Model.(priced); ok && model.Priced(agent.Model) && !model.Priced(wished) {
		h.notices = append(h.notices, fmt.Sprintf("`models.%s` names %s, whose price is not known; it was left out, because no limit on cost would hold", agent.ID, wished.ID))
		return agent.Model
	}
	return wished
}
