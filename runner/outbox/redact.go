package outbox

import (
	"bytes"
	"encoding/json"
)

// redacted returns a payload whose texts hold no secrets. Every text is looked
// at by itself and decoded, so that no escape can hide one.
func (o *Outbox) redacted(payload json.RawMessage) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber() // ids do not fit into floating point
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, &Refusal{Reason: "the effect's payload cannot be read: " + err.Error(), Err: err}
	}
	clean, err := o.redactValue(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(clean)
}

func (o *Outbox) redactValue(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case string:
		return o.Redact(value)
	case []any:
		for i := range value {
			if value[i], err = o.redactValue(value[i]); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for name := range value {
			if value[name], err = o.redactValue(value[name]); err != nil {
				return nil, err
			}
		}
		return value, nil
	}
	return value, nil
}
