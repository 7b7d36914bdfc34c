package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
)

// formKeywords are what MCP's forms know (client features, elicitation), and what
// may as well be there. References and nested schemas are not among them: clients
// compile the schema, and some of them die of those.
var formKeywords = map[string]bool{
	"type": true, "title": true, "description": true, "default": true, "minLength": true, "maxLength": true, "pattern": true, "format": true,
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true, "enum": true, "enumNames": true, "const": true,
	"oneOf": true, "anyOf": true, "items": true, "minItems": true, "maxItems": true, "uniqueItems": true, "examples": true,
}

// checkFormSchema takes a flat form.
func checkFormSchema(raw json.RawMessage) error {
	var schema map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || text(schema["type"]) != "object" || !isObject(schema["properties"]) || json.Unmarshal(schema["properties"], &properties) != nil {
		return errors.New(`elicitation: the schema must be {"type":"object","properties":{…}}: a flat form`)
	}
	for key := range schema {
		switch key {
		case "type", "properties", "required", "title", "description", "$schema", "additionalProperties":
		default:
			return fmt.Errorf("elicitation: a form's schema has no %.40q", key)
		}
	}
	if more := bytes.TrimSpace(schema["additionalProperties"]); len(more) > 0 && more[0] != 't' && more[0] != 'f' {
		return errors.New("elicitation: additionalProperties of a form must be true or false")
	}
	for name, p := range properties {
		fields, err := checkProperty(p)
		if err != nil {
			return fmt.Errorf("elicitation: the property %.40q %w", name, err)
		}
		switch kind := text(fields["type"]); kind {
		case "string", "number", "integer", "boolean", "array":
		default:
			return fmt.Errorf("elicitation: the property %.40q has the type %.20q; a form has string, number, integer, boolean and, for a choice of several, array", name, kind)
		}
	}
	return nil
}

// checkProperty takes the schema of one field, or of what it can be chosen from.
func checkProperty(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if !isObject(raw) || json.Unmarshal(raw, &fields) != nil {
		return nil, errors.New("is no schema")
	}
	for key, value := range fields {
		if !formKeywords[key] {
			return nil, fmt.Errorf("has the keyword %.40q, which forms don't have", key)
		}
		switch key {
		case "oneOf", "anyOf":
			var choices []json.RawMessage
			if json.Unmarshal(value, &choices) != nil || len(choices) == 0 {
				return nil, fmt.Errorf("has no list of choices in %s", key)
			}
			for _, c := range choices {
				if inner, err := checkProperty(c); err != nil || inner["oneOf"] != nil || inner["anyOf"] != nil || inner["items"] != nil {
					return nil, fmt.Errorf("has a choice in %s that is more than {const, title}", key)
				}
			}
		case "items":
			if inner, err := checkProperty(value); err != nil || inner["items"] != nil {
				return nil, errors.New("has items that are more than a choice")
			}
		}
	}
	return fields, nil
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// checkForm checks what the user has filled in.
func checkForm(q *mcp.ElicitParams, a *mcp.ElicitResult) error {
	schema, err := json.Marshal(q.RequestedSchema)
	if err != nil {
		return err
	}
	content := json.RawMessage("{}")
	if a.Content != nil {
		if content, err = json.Marshal(a.Content); err != nil {
			return err
		}
	}
	form := &manifest.Tool{OutputSchema: schema}
	if err := form.CheckOutput(content); err != nil {
		return fmt.Errorf("what the user filled in does not fit the form: %s", strings.TrimSpace(err.Error()))
	}
	return nil
}
