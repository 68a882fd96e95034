package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// bind prepares arguments for either engine: times become milliseconds, text
// becomes valid UTF-8 without NUL, nil bytes become empty ones.
func bind(arguments []any) []any {
	bound := make([]any, len(arguments))
	for i, argument := range arguments {
		bound[i] = bindOne(argument)
	}
	return bound
}

func bindOne(argument any) any {
	switch value := argument.(type) {
	case nil, bool, int64:
		return value
	case string:
		return cleanText(value)
	case time.Time:
		return millis(value)
	case json.RawMessage:
		return cleanText(string(value))
	case []byte:
		if value == nil {
			return []byte{}
		}
		return value
	}
	if v := reflect.ValueOf(argument); v.Kind() == reflect.String {
		return cleanText(v.String())
	}
	return argument
}

// cleanText replaces what Postgres refuses and SQLite takes: NUL and bytes that
// are not UTF-8. On both engines the same text comes back.
func cleanText(text string) string {
	const replacement = "\uFFFD"
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", replacement)
	}
	return strings.ToValidUTF8(text, replacement)
}

// millis is how times are stored; 0 is the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// A timeTarget reads milliseconds into a time in UTC.
type timeTarget struct{ target *time.Time }

func at(target *time.Time) timeTarget { return timeTarget{target} }

// Scan implements [sql.Scanner].
func (t timeTarget) Scan(source any) error {
	number, ok := source.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", source)
	}
	*t.target = time.Time{}
	if number != 0 {
		*t.target = time.UnixMilli(number).UTC()
	}
	return nil
}

// A jsonTarget reads JSON text: as it is into a [json.RawMessage], decoded into
// anything else. Empty text leaves the target alone.
type jsonTarget struct{ target any }

func text(target any) jsonTarget { return jsonTarget{target} }

// Scan implements [sql.Scanner].
func (t jsonTarget) Scan(source any) error {
	var content sql.NullString
	if err := content.Scan(source); err != nil {
		return err
	}
	if content.String == "" {
		return nil
	}
	if raw, ok := t.target.(*json.RawMessage); ok {
		*raw = json.RawMessage(content.String)
		return nil
	}
	return json.Unmarshal([]byte(content.String), t.target)
}

// encode returns a value as JSON text. Only plain maps and slices are encoded,
// which cannot fail.
func encode(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
