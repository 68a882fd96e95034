package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"handoff/agents"
)

func TestValidateSaysWhatIsWrong(t *testing.T) {
	owners := []string{"implementer", "tester"}
	cases := map[string]struct {
		tasks []Task
		want  string
	}{
		"none":          {nil, "tasks is empty"},
		"blank title":   {[]Task{{Title: "a"}, {Title: " \n"}}, "tasks[1].title is empty"},
		"long title":    {[]Task{{Title: strings.Repeat("ü", MaxTitle+1)}}, "more than 160 characters"},
		"twice":         {[]Task{{Title: "Do it"}, {Title: "do  it"}}, "tasks[1].title is the same as tasks[0].title"},
		"unknown owner": {[]Task{{Title: "a", Owner: "boss"}}, `no agent is called "boss"; the agents are implementer, tester`},
		"too many":      {make([]Task, MaxTasks+1), "31 tasks are too many"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Validate(c.tasks, owners); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestValidateCleansTitles(t *testing.T) {
	list, err := Validate([]Task{{Title: " Add\n- [x] a\u202e \u200bthing\x1b[31m ", Owner: " Tester "}}, []string{"tester"})
	if err != nil {
		t.Fatal(err)
	}
	want := Checklist{{Title: "Add - [x] a thing[31m", Owner: "tester"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The story of a feature: the tester sends the work back once.
func TestChecklistFollowsTheSession(t *testing.T) {
	list := Checklist{
		{Title: "Design", Owner: "architect"},
		{Title: "Build", Owner: "implementer"},
		{Title: "Test", Owner: "tester"},
		{Title: "Explain", Owner: "documentation"},
		{Title: "Publish", Owner: "copilot"},
	}
	steps := []struct{ from, to, done string }{
		{"copilot", "architect", ""},
		{"architect", "implementer", "Design"},
		{"implementer", "tester", "Design Build"},
		{"tester", "implementer", "Design"},
		{"implementer", "tester", "Design Build"},
		{"tester", "documentation", "Design Build Test"},
		{"documentation", "copilot", "Design Build Test Explain"},
	}
	for i, step := range steps {
		list = list.HandedOff(step.from, step.to)
		if got := done(list); got != step.done {
			t.Fatalf("after step %d (%s → %s): done %q, want %q", i, step.from, step.to, got, step.done)
		}
	}
}

func done(list Checklist) string {
	var titles []string
	for _, task := range list {
		if task.Done {
			titles = append(titles, task.Title)
		}
	}
	return strings.Join(titles, " ")
}

func TestFoldTakesTheLastPlanAndTheHandoffsAfterIt(t *testing.T) {
	written := func(arguments string, failed bool) agents.Item {
		return agents.Item{Kind: agents.KindToolCallOutput, IsError: failed,
			Call: &agents.ToolCall{Name: ToolName, Arguments: arguments}}
	}
	passed := func(from, to string) agents.Item {
		return agents.Item{Kind: agents.KindHandoffOutput, From: from, To: to}
	}
	items := []agents.Item{
		written(`{"tasks":[{"title":"Old","owner":"tester"}]}`, false),
		passed("copilot", "tester"),
		written(`{"tasks":[{"title":"Build","owner":"implementer"},{"title":"Publish","owner":"copilot"}]}`, false),
		written(`{"tasks":[]}`, true),
		passed("copilot", "implementer"),
		passed("implementer", "copilot"),
	}
	want := Checklist{{Title: "Build", Owner: "implementer", Done: true}, {Title: "Publish", Owner: "copilot"}}
	if diff := cmp.Diff(want, Fold(items)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if Fold(nil) != nil {
		t.Error("a session without a plan has one")
	}
}

func TestEncodeAndDecodeAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list Checklist
		for i := range rapid.IntRange(1, MaxTasks).Draw(t, "tasks") {
			list = append(list, Task{Title: fmt.Sprint("task ", i), Done: rapid.Bool().Draw(t, "done"), Owner: rapid.SampledFrom([]string{"", "tester"}).Draw(t, "owner")})
		}
		again, err := Decode(list.Encode())
		if err != nil || !cmp.Equal(list, again) {
			t.Fatalf("%v became %v, %v", list, again, err)
		}
	})
	if _, err := Decode("{"); err == nil {
		t.Error("broken JSON was accepted")
	}
}

// Whatever happens, a handoff changes at most one tick and no title.
func TestHandoffMovesOneTick(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		var list Checklist
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			list = append(list, Task{Title: "t", Owner: rapid.SampledFrom(names).Draw(t, "owner"), Done: rapid.Bool().Draw(t, "done")})
		}
		before := append(Checklist(nil), list...)
		next := list.HandedOff(rapid.SampledFrom(names).Draw(t, "from"), rapid.SampledFrom(names).Draw(t, "to"))
		if !cmp.Equal(before, list) {
			t.Fatal("the checklist itself was changed")
		}
		moved := 0
		for i := range next {
			if next[i].Done != list[i].Done {
				moved++
			}
		}
		if moved > 1 {
			t.Fatalf("%d ticks moved at once", moved)
		}
	})
}
