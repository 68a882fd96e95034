package llm

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed models.yaml
var modelsFile []byte

// table is what we know of models; the file is part of the binary, and a test
// reads every line of it.
var table = mustReadTable(modelsFile)

// A ModelInfo is what is known of a model at a provider.
type ModelInfo struct {
	// ID is the model's name as the provider wants it.
	ID string `yaml:"id"`
	// Context is the size of the context window in tokens.
	Context int64 `yaml:"context"`
	// Prices mean nothing unless Priced.
	Prices `yaml:",inline"`
	// Long are the prices of a call with a long prompt, nil where they are the
	// same.
	Long *LongPrices `yaml:"long"`
	// Priced says that the prices are known.
	Priced bool `yaml:"-"`
	// Known says that the model is in the table.
	Known bool `yaml:"-"`

	Capabilities `yaml:",inline"`
}

// Prices are in US dollars per million tokens, which is the same as millionths
// of a dollar per token. A nil Cached means the price of Input.
type Prices struct {
	Input  float64  `yaml:"input"`
	Cached *float64 `yaml:"cached"`
	Output float64  `yaml:"output"`
}

// LongPrices are those of a call whose prompt has more than Above tokens.
type LongPrices struct {
	Above  int64 `yaml:"above"`
	Prices `yaml:",inline"`
}

// Capabilities say what a model takes.
type Capabilities struct {
	// StrictSchema: a strict JSON schema for the answer.
	StrictSchema bool `yaml:"strict_schema"`
	// ParallelTools: the parallel_tool_calls setting.
	ParallelTools bool `yaml:"parallel_tools"`
	// Temperature: a temperature other than the default.
	Temperature bool `yaml:"temperature"`
	// SystemNotes: system messages in the middle of a history.
	SystemNotes bool `yaml:"system_notes"`
	// CompletionTokens: the limit is called max_completion_tokens.
	CompletionTokens bool `yaml:"completion_tokens"`
	// CacheOnRequest: prompts are cached only when the request asks for it.
	CacheOnRequest bool `yaml:"cache_on_request"`
}

// A modelTable is the file models.yaml.
type modelTable struct {
	Date     string                  `yaml:"date"`
	Defaults map[string]string       `yaml:"defaults"`
	Unknown  ModelInfo               `yaml:"unknown"`
	Families map[string]Capabilities `yaml:"families"`
	Models   []struct {
		Family    string   `yaml:"family"`
		Providers []string `yaml:"providers"`
		ModelInfo `yaml:",inline"`
	} `yaml:"models"`
}

// PricesDate returns the day of the price table, as yyyy-mm-dd.
func PricesDate() string { return table.Date }

// mustReadTable reads the embedded file. A fault in it is a fault of the build
// and shows in the first test, so it may panic.
func mustReadTable(content []byte) modelTable {
	var read modelTable
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&read); err != nil {
		panic("models.yaml: " + err.Error())
	}
	return read
}

// version matches what providers append to the name of a model to pin or to
// vary it without changing its price: dates, "latest", "preview".
var version = regexp.MustCompile(`^(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|@\d{8}|@default|-latest)$`)

// model returns what is known of a model here.
func (e *endpoint) model(id string) ModelInfo {
	info := table.lookup(e.provider, id)
	info.StrictSchema = info.StrictSchema && e.provider.StrictSchema
	return info
}

// lookup finds a model by its bare name: openrouter and vertex put the maker
// in front ("openai/gpt-4o"). Of an unknown model of a known family the
// capabilities are known, not the price.
func (t modelTable) lookup(p provider, id string) ModelInfo {
	bare := strings.ToLower(id[strings.LastIndexByte(id, '/')+1:])
	free := strings.HasSuffix(bare, ":free")
	bare, _, _ = strings.Cut(bare, ":")
	for _, entry := range t.Models {
		rest, found := strings.CutPrefix(bare, entry.ID)
		if !found || (rest != "" && !version.MatchString(rest)) {
			continue
		}
		info := entry.ModelInfo
		info.ID, info.Known = id, true
		info.Capabilities = t.Families[entry.Family]
		info.Priced = p.Priced && (len(entry.Providers) == 0 || slices.Contains(entry.Providers, p.Name))
		if free {
			info.Prices, info.Long = Prices{}, nil
		}
		return info
	}
	info := t.Unknown
	info.ID = id
	if family := t.family(bare); family != "" {
		info.Capabilities = t.Families[family]
	}
	return info
}

// family returns the longest family name that the model's name begins with.
func (t modelTable) family(bare string) string {
	best := ""
	for name := range t.Families {
		if len(name) > len(best) && strings.HasPrefix(bare, name) {
			best = name
		}
	}
	return best
}
