package patch

import (
	"encoding/json"
	"strings"
)

// unescapeWhole undoes the escaping of a diff that was sent as the inside of a
// JSON string: one long line with \n in it.
func unescapeWhole(diff string) string {
	text := strings.TrimSpace(diff)
	if strings.ContainsAny(text, "\n") || !strings.Contains(text, `\n`) {
		return diff
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
	var plain string
	if json.Unmarshal([]byte(`"`+text+`"`), &plain) != nil {
		return diff
	}
	return plain
}
