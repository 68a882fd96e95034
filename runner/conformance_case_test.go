package runner_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A testCase is one conformance case. Keys that the driver does not know are
// errors: a case whose point was not checked must not pass.
type testCase struct {
	ID            string                     `json:"id"`
	Rules         []string                   `json:"rules"`
	Upstream      string                     `json:"upstream"`
	Given         string                     `json:"given"`
	Secret        bool                       `json:"secret"`
	Input         string                     `json:"input"`
	Agents        []caseAgent                `json:"agents"`
	Tools         []caseTool                 `json:"tools"`
	Turns         []caseTurn                 `json:"turns"`
	Expect        expectation                `json:"expect"`
	RunConfig     caseConfig                 `json:"run_config"`
	ErrorHandlers map[string]json.RawMessage `json:"error_handlers"`
	Approvals     []caseApproval             `json:"approvals"`
	Crash         []caseCrash                `json:"crash"`
	Zombie        *caseCrash                 `json:"zombie"`
	Env           map[string]string          `json:"env"`
	Helper        string                     `json:"helper"`
	StartAgent    string                     `json:"start_agent"`
	Stream        bool                       `json:"stream"`
	Then          []struct {
		Input      string `json:"input"`
		StartAgent string `json:"start_agent"`
	} `json:"then"`
}

type caseAgent struct {
	Name             string            `json:"name"`
	Instructions     string            `json:"instructions"`
	Tools            []caseToolName    `json:"tools"`
	Handoffs         []caseHandoff     `json:"handoffs"`
	AgencyRecipients []string          `json:"agency_recipients"`
	InputGuardrails  []caseGuardrail   `json:"input_guardrails"`
	OutputGuardrails []caseGuardrail   `json:"output_guardrails"`
	OutputSchema     json.RawMessage   `json:"output_schema"`
	ToolChoice       string            `json:"tool_choice"`
	ResetToolChoice  *bool             `json:"reset_tool_choice"`
	ToolUseBehavior  caseToolUseChoice `json:"tool_use_behavior"`
}

// A caseToolName is a tool's name or an agent used as a tool.
type caseToolName struct {
	Name        string
	AgentAsTool string `json:"agent_as_tool"`
}

func (n *caseToolName) UnmarshalJSON(data []byte) error {
	type object caseToolName
	return stringOr(data, &n.Name, (*object)(n))
}

type caseHandoff struct {
	Agent       string `json:"agent"`
	InputFilter string `json:"input_filter"`
}

func (h *caseHandoff) UnmarshalJSON(data []byte) error {
	type object caseHandoff
	return stringOr(data, &h.Agent, (*object)(h))
}

type caseToolUseChoice struct {
	Kind            string   `json:"-"`
	StopAtToolNames []string `json:"stop_at_tool_names"`
}

func (c *caseToolUseChoice) UnmarshalJSON(data []byte) error {
	type object caseToolUseChoice
	return stringOr(data, &c.Kind, (*object)(c))
}

type caseGuardrail struct {
	Name     string `json:"name"`
	Trip     bool   `json:"trip"`
	Parallel bool   `json:"parallel"`
}

type caseTool struct {
	Name     string `json:"name"`
	Effect   string `json:"effect"`
	Behavior struct {
		Return    json.RawMessage `json:"return"`
		ReturnArg string          `json:"return_arg"`
		Error     string          `json:"error"`
		SleepMS   int             `json:"sleep_ms"`
	} `json:"behavior"`
	Reconcile      string          `json:"reconcile"`
	NeedsApproval  bool            `json:"needs_approval"`
	OnError        string          `json:"on_error"`
	OnTimeout      string          `json:"on_timeout"`
	TimeoutMS      int             `json:"timeout_ms"`
	Params         json.RawMessage `json:"params"`
	InputGuardrail *struct {
		Reject string `json:"reject"`
	} `json:"input_guardrail"`
}

type caseTurn struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	SSE     []string          `json:"sse"`
	DelayMS int               `json:"delay_ms"`
}

type caseConfig struct {
	MaxTurns             int   `json:"max_turns"`
	MaxHandoffs          int   `json:"max_handoffs"`
	MaxTotalTokens       int64 `json:"max_total_tokens"`
	MaxToolConcurrency   int   `json:"max_tool_concurrency"`
	RunTimeoutMS         int   `json:"run_timeout_ms"`
	OutputRepairAttempts *int  `json:"output_repair_attempts"`
	NestHandoffHistory   bool  `json:"nest_handoff_history"`
	SessionLimit         int   `json:"session_limit"`
	CompactAtChars       int   `json:"compact_at_chars"`
	ModelRetry           struct {
		MaxRetries *int `json:"max_retries"`
		InitialMS  int  `json:"initial_ms"`
	} `json:"model_retry"`
}

type caseApproval struct {
	CallID   string `json:"call_id"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	After    string `json:"after"`
}

type caseCrash struct {
	Point  string `json:"point"`
	StopAt string `json:"stop_at"`
	Record string `json:"record"`
	Nth    int    `json:"nth"`
	CallID string `json:"call_id"`
}

type expectation struct {
	NextSteps              []string                     `json:"next_steps"`
	FinalOutput            *string                      `json:"final_output"`
	FinalOutputJSON        json.RawMessage              `json:"final_output_json"`
	Error                  string                       `json:"error"`
	ErrorContains          string                       `json:"error_contains"`
	Items                  []expectedItem               `json:"items"`
	ItemsLast              *expectedItem                `json:"items_last"`
	NoteCount              *int                         `json:"note_count"`
	LastAgent              string                       `json:"last_agent"`
	Requests               *int                         `json:"requests"`
	RequestsMax            *int                         `json:"requests_max"`
	RequestAsserts         []requestAssert              `json:"request_asserts"`
	Effects                map[string]int               `json:"effects"`
	EffectsMax             map[string]int               `json:"effects_max"`
	EffectsByCall          map[string]int               `json:"effects_by_call"`
	EffectsArgs            map[string][]json.RawMessage `json:"effects_args"`
	FilesWritten           *[]string                    `json:"files_written"`
	MaxParallelSeen        *int                         `json:"max_parallel_seen"`
	ToolOutputOrder        []string                     `json:"tool_output_order"`
	Usage                  map[string]int64             `json:"usage"`
	UsageHasEstimatedEntry *bool                        `json:"usage_has_estimated_entry"`
	WallMSMax              int                          `json:"wall_ms_max"`
	WallMSMin              int                          `json:"wall_ms_min"`
	JournalItemsContain    []string                     `json:"journal_items_contain"`
	JournalOutcome         map[string]string            `json:"journal_outcome"`
	JournalClosedCalls     []string                     `json:"journal_closed_calls"`
	JournalSingleWriter    bool                         `json:"journal_single_writer"`
	Threads                map[string][]string          `json:"threads"`
	Events                 []string                     `json:"events"`
	EventsHaveSeq          bool                         `json:"events_have_seq"`
	Sweep                  bool                         `json:"sweep"`
	FoldEqualExcept        textList                     `json:"fold_equal_except"`
	Session                struct {
		ActiveAgent      string   `json:"active_agent"`
		ItemsExcludeText textList `json:"items_exclude_text"`
	} `json:"session"`
}

type expectedItem struct {
	Kind            string  `json:"kind"`
	Agent           string  `json:"agent"`
	CallID          string  `json:"call_id"`
	Output          *string `json:"output"`
	ContentContains string  `json:"content_contains"`
}

type requestAssert struct {
	Request               int             `json:"request"`
	ToolCallID            string          `json:"tool_call_id"`
	ContentContains       string          `json:"content_contains"`
	ContentContainsAny    textList        `json:"content_contains_any"`
	ContainsText          string          `json:"contains_text"`
	SystemPromptContains  string          `json:"system_prompt_contains"`
	CountSubstring        []any           `json:"count_substring"`
	MessagesEqual         [][2]string     `json:"messages_equal"`
	MessagesRoles         []string        `json:"messages_roles"`
	RolesTail             []string        `json:"roles_tail"`
	NoRole                string          `json:"no_role"`
	ToolNames             []string        `json:"tool_names"`
	HandoffEnum           []string        `json:"handoff_enum"`
	JSONPath              string          `json:"json_path"`
	Equals                json.RawMessage `json:"equals"`
	Absent                bool            `json:"absent"`
	AllToolCallsAnswered  bool            `json:"all_tool_calls_answered"`
	NoOrphanToolMessages  bool            `json:"no_orphan_tool_messages"`
	ToolCallIDsMatch      bool            `json:"tool_call_ids_match"`
	ToolCallIDNonempty    bool            `json:"tool_call_id_nonempty"`
	ToolCallIDsUniqueFlag bool            `json:"tool_call_ids_unique"`
}

// A textList is a text or a list of them.
type textList []string

func (l *textList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = textList{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// stringOr decodes a string, or an object without unknown keys.
func stringOr(data []byte, text *string, object any) error {
	if json.Unmarshal(data, text) == nil {
		return nil
	}
	return decodeStrictly(data, object)
}

func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// readCases reads a file of cases. A relative name is looked for here, and
// from the module's root, where the command was probably typed.
func readCases(t *testing.T, name string) []testCase {
	t.Helper()
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) && !filepath.IsAbs(name) {
		data, err = os.ReadFile(filepath.Join("..", name))
	}
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Cases []json.RawMessage `json:"cases"`
	}
	if err := json.Unmarshal(data, &raw); err != nil || len(raw.Cases) == 0 {
		t.Fatalf("%s holds no cases: %v", name, err)
	}
	cases := make([]testCase, len(raw.Cases))
	for i, data := range raw.Cases {
		if err := decodeStrictly(data, &cases[i]); err != nil {
			cases[i] = testCase{ID: fmt.Sprintf("#%d", i+1), Given: "unreadable: " + err.Error()}
			var id struct{ ID string }
			if json.Unmarshal(data, &id) == nil && id.ID != "" {
				cases[i].ID = id.ID
			}
		}
	}
	return cases
}
