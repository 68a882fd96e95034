package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"handoff/agents/llm"
	"handoff/runner/repoconfig"
)

// The page that these tests hold against the program, in both directions:
// what the program takes is on the page, and what is on the page the program
// takes.
func configurationPage(t *testing.T) page {
	t.Helper()
	content, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	return page(content)
}

type page string

// section returns what stands between a heading and the next one that is not
// below it.
func (p page) section(t *testing.T, heading string) page {
	t.Helper()
	_, rest, found := strings.Cut(string(p), "\n"+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	level := strings.Index(heading, " ")
	// A single # would be a comment in an example.
	if next := regexp.MustCompile(fmt.Sprintf(`(?m)^#{2,%d} `, level)).FindStringIndex(rest); next != nil {
		rest = rest[:next[0]]
	}
	return page(rest)
}

// own returns a section without the sections below it.
func (p page) own() page {
	own, _, _ := strings.Cut(string(p), "\n### ")
	return page(own)
}

// rows returns the cells of all rows of the page's tables, without headings.
func (p page) rows() [][]string {
	var rows [][]string
	lines := strings.Split(string(p), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "| ") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		rows = append(rows, cells)
	}
	return rows
}

// blocks returns the contents of the page's YAML blocks.
func (p page) blocks() []string {
	var blocks []string
	for _, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(p), -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

func newParser(t *testing.T) (*commandLine, *kong.Kong) {
	t.Helper()
	var cli commandLine
	parser, err := kong.New(&cli, kong.Name("handoff"), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	return &cli, parser
}

// plainText takes the code marks off a cell.
func plainText(cell string) string { return strings.ReplaceAll(cell, "`", "") }

// shownFlag is how the page names a flag.
func shownFlag(flag *kong.Flag) string {
	name := "--" + flag.Name
	if flag.Short != 0 {
		name = "-" + string(flag.Short) + ", " + name
	}
	return name
}

func TestThePageListsEveryFlagWithItsVariableAndDefault(t *testing.T) {
	text := configurationPage(t)
	_, parser := newParser(t)
	sections := map[string]bool{}
	for _, command := range parser.Model.Children {
		if command.Hidden {
			continue
		}
		heading := "## handoff " + command.Name
		sections[heading] = true
		t.Run(command.Name, func(t *testing.T) {
			checkFlags(t, command, text.section(t, heading).own().rows())
		})
		for _, below := range command.Children {
			name := "handoff " + command.Name + " " + below.Name
			if len(below.Flags) == 0 {
				if !strings.Contains(string(text), "`"+name) && below != command.DefaultCmd {
					t.Errorf("the page does not tell of %s", name)
				}
				continue
			}
			sections["### "+name] = true
			t.Run(command.Name+" "+below.Name, func(t *testing.T) {
				checkFlags(t, below, text.section(t, "### "+name).rows())
			})
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^###? handoff .*$`).FindAllString(string(text), -1) {
		if !sections[heading] {
			t.Errorf("the page describes %q, which is no command, or describes it twice", heading)
		}
		delete(sections, heading)
	}
}

// checkFlags compares the flags of a command with the rows of its table:
// flag, environment, default, example, meaning.
func checkFlags(t *testing.T, command *kong.Node, rows [][]string) {
	listed := map[string][]string{}
	for _, row := range rows {
		if len(row) != 5 {
			t.Fatalf("the row %q has %d cells, want 5", row, len(row))
		}
		listed[plainText(row[0])] = row
	}
	for _, flag := range command.Flags {
		name := shownFlag(flag)
		row, ok := listed[name]
		if flag.Name == "help" || flag.Hidden {
			continue
		}
		if !ok {
			t.Errorf("the page does not list %s", name)
			continue
		}
		delete(listed, name)
		if got, want := plainText(row[1]), strings.Join(flag.Envs, ", "); got != want {
			t.Errorf("%s: the page names the variable %q, the program takes %q", name, got, want)
		}
		if got := plainText(row[2]); got != flag.Default {
			t.Errorf("%s: the page says that the default is %q, it is %q", name, got, flag.Default)
		}
		for value := range strings.SplitSeq(flag.Enum, ",") {
			if !strings.Contains(row[4], value) {
				t.Errorf("%s: the page does not say that it may be %s", name, value)
			}
		}
		checkExample(t, command, flag, plainText(row[3]))
	}
	for name := range listed {
		t.Errorf("the page lists %s, which %s does not take", name, command.Name)
	}
}

// checkExample gives the example to the program.
func checkExample(t *testing.T, command *kong.Node, flag *kong.Flag, example string) {
	t.Helper()
	if example == "" {
		t.Errorf("--%s has no example", flag.Name)
	}
	arguments := append(strings.Fields(command.Path()), "--"+flag.Name+"="+example)
	for _, positional := range command.Positional {
		if positional.Required {
			arguments = append(arguments, "something")
		}
	}
	_, parser := newParser(t)
	if _, err := parser.Parse(arguments); err != nil {
		t.Errorf("the example of --%s is refused: %v", flag.Name, err)
	}
}

func TestThePageListsTheVariablesOfProviders(t *testing.T) {
	text := configurationPage(t).section(t, "## Model providers")
	rows := map[string][]string{}
	for _, row := range text.rows() {
		rows[plainText(row[0])] = row
	}
	for _, provider := range llm.Providers(func(string) string { return "" }) {
		row := rows[provider.Name]
		delete(rows, provider.Name)
		if len(row) != 4 {
			t.Errorf("the page does not list the provider %s", provider.Name)
			continue
		}
		if got, want := plainText(row[1]), strings.Join(provider.Missing, ", "); got != want {
			t.Errorf("%s: the page says that it needs %q, it needs %q", provider.Name, got, want)
		}
		if got := plainText(row[3]); got != provider.Model {
			t.Errorf("%s: the page says that its model is %q, it is %q", provider.Name, got, provider.Model)
		}
		listed := slices.Sorted(slices.Values(variables(row[1] + " " + row[2])))
		if diff := cmp.Diff(asked(provider.Name), listed); diff != "" {
			t.Errorf("%s: the variables that it looks up (-) and those on the page (+):\n%s", provider.Name, diff)
		}
	}
	for name := range rows {
		t.Errorf("the page lists the provider %s, which is not known", name)
	}
}

// asked returns the variables that a provider looks up. It is connected twice:
// some are looked up only if others are set, or are not.
func asked(provider string) []string {
	names := map[string]bool{}
	for _, value := range []string{"", "http://127.0.0.1:1"} {
		_, _ = llm.New(llm.Config{Provider: provider, Getenv: func(name string) string {
			names[name] = true
			if name == "OPENAI_BASE_URL" && provider == llm.ProviderOpenAI {
				return "" // with it openai is another provider
			}
			return value
		}})
	}
	return slices.Sorted(maps.Keys(names))
}

var variableName = regexp.MustCompile("`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)`")

// variables returns the environment variables that a text names in code marks.
func variables(text string) []string {
	var names []string
	for _, found := range variableName.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

func TestThePageNamesNoVariableThatNobodyReads(t *testing.T) {
	read := map[string]bool{}
	_, parser := newParser(t)
	for _, command := range parser.Model.Children {
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				read[name] = true
			}
		}
	}
	for _, provider := range llm.Providers(func(string) string { return "" }) {
		for _, name := range asked(provider.Name) {
			read[name] = true
		}
	}
	for _, name := range readInSource(t) {
		read[name] = true
	}
	for _, name := range variables(string(configurationPage(t))) {
		if !read[name] {
			t.Errorf("the page names the variable %s, which nobody reads", name)
		}
	}
}

// readInSource returns the variables that the program's own files look up by
// name.
func readInSource(t *testing.T) []string {
	t.Helper()
	lookup := regexp.MustCompile(`[gG]etenv\("([A-Z_]+)"\)`)
	var names []string
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := os.ReadFile(name)
		for _, found := range lookup.FindAllSubmatch(content, -1) {
			names = append(names, string(found[1]))
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("no lookups were found: %v", err)
	}
	return names
}

func TestThePageListsEveryKeyOfTheRepositorysFile(t *testing.T) {
	text := configurationPage(t).section(t, "## .github/handoff.yml")
	example := text.blocks()[0]
	file, faults := repoconfig.Parse([]byte(example))
	if len(faults) > 0 {
		t.Fatalf("the page's example has faults: %v", faults)
	}
	leaves := 0
	for name, set := range fieldsSet(reflect.ValueOf(*file), "") {
		leaves++
		if !set {
			t.Errorf("no key of the example sets %s", name)
		}
	}
	var document map[string]any
	if err := yaml.Unmarshal([]byte(example), &document); err != nil {
		t.Fatal(err)
	}
	inExample := slices.Sorted(maps.Keys(keysOf(document)))
	if len(inExample) != leaves {
		t.Errorf("the example has %d keys and sets %d fields", len(inExample), leaves)
	}
	var inTable []string
	for _, row := range text.own().rows() {
		inTable = append(inTable, plainText(row[0]))
	}
	slices.Sort(inTable)
	if diff := cmp.Diff(inExample, inTable); diff != "" {
		t.Errorf("the keys of the example (-) and of the table (+) differ:\n%s", diff)
	}
}

// fieldsSet walks the exported fields of a struct and the structs in it.
func fieldsSet(value reflect.Value, prefix string) map[string]bool {
	fields := map[string]bool{}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		switch {
		case !field.IsExported():
		case field.Type.Kind() == reflect.Struct:
			maps.Copy(fields, fieldsSet(value.Field(i), prefix+field.Name+"."))
		default:
			fields[prefix+field.Name] = !value.Field(i).IsZero()
		}
	}
	return fields
}

// keysOf returns the dotted names of a document's keys. The names below models
// are the repository's own choice and count as one key.
func keysOf(document map[string]any) map[string]bool {
	keys := map[string]bool{}
	for name, value := range document {
		below, ok := value.(map[string]any)
		if !ok || name == "models" {
			keys[name] = true
			continue
		}
		for inner := range below {
			keys[name+"."+inner] = true
		}
	}
	return keys
}

func TestThePageShowsDefaultsOfTheRepositorysFile(t *testing.T) {
	config, _ := repoconfig.DefaultOperator().Resolve(nil)
	rows := map[string]string{}
	for _, row := range configurationPage(t).section(t, "## .github/handoff.yml").own().rows() {
		rows[plainText(row[0])] = plainText(row[1])
	}
	want := map[string]string{
		"instructions":           strings.Join(config.Instructions, ", "),
		"approval.check_run":     config.Approval.CheckRun,
		"approval.require_other": "false",
		"setup":                  "none",
		"test":                   "none",
		"git":                    string(config.Git),
		"commit.author":          string(config.Commit.Author),
		"commit.co_author":       fmt.Sprint(config.Commit.CoAuthor),
		"commit.sign_off":        fmt.Sprint(config.Commit.SignOff),
	}
	if config.Approval.RequireOther || config.Setup != nil || config.Test != nil {
		t.Errorf("the defaults have changed: %+v", config)
	}
	for key, value := range rows {
		if expected, ok := want[key]; ok && value != expected {
			t.Errorf("the page says that %s is %q by default, it is %q", key, value, expected)
		} else if !ok && value != "the operator's" {
			t.Errorf("the page says that %s is %q by default, want the operator's", key, value)
		}
	}
}

func TestThePageShowsFaultsAsTheyAre(t *testing.T) {
	section := configurationPage(t).section(t, "### Faults")
	_, faults := repoconfig.Parse([]byte(section.blocks()[0]))
	if len(faults) == 0 {
		t.Fatal("the page's faulty example has no faults")
	}
	for _, fault := range faults {
		if !strings.Contains(string(section), "    "+fault.String()+"\n") {
			t.Errorf("the page does not show the fault %q", fault)
		}
	}
	file, _ := repoconfig.Parse([]byte("limits:\n  turns: 41\n"))
	_, wishes := repoconfig.DefaultOperator().Resolve(file)
	if len(wishes) != 1 || !strings.Contains(string(section), "    "+wishes[0].String()+"\n") {
		t.Errorf("the page does not show the wish %v", wishes)
	}
}

// TestTheOperatorsDefaultsAreOneThing compares the flags' defaults with those
// of package repoconfig, so that a bot and a test of the rules agree.
func TestTheOperatorsDefaultsAreOneThing(t *testing.T) {
	cli, parser := newParser(t)
	if _, err := parser.Parse([]string{"serve"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(repoconfig.DefaultOperator(), cli.Serve.operator()); diff != "" {
		t.Errorf("repoconfig's defaults (-) and those of the flags (+) differ:\n%s", diff)
	}
}
