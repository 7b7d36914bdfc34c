package manifest

import (
	"encoding/json"
	"errors"
)

// CheckDynamic tells why a tool that is to be added to a running page would not be published; nil: it would. params are as
// in a page's own declaration, nil for none. The error is one sentence for whoever adds it.
func CheckDynamic(name, description string, params json.RawMessage, origin *Origin) error {
	if params == nil {
		params = json.RawMessage("{}")
	}
	frame, err := json.Marshal(map[string]any{"tools": []any{map[string]any{
		"name": name, "description": description, "params": params, "source": "dynamic", "origin": origin,
	}}})
	if err != nil {
		return err
	}
	m, err := Parse(frame, Limits{})
	if err != nil {
		return err
	}
	if len(m.Problems) > 0 {
		return errors.New(m.Problems[0].Reason)
	}
	return nil
}
