package manifest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

func cached(schema json.RawMessage) bool {
	checkers.mu.Lock()
	defer checkers.mu.Unlock()
	_, ok := checkers.entries[sha256.Sum256(schema)]
	return ok
}

func TestToolsWithTheSameSchemaShareItsChecker(t *testing.T) {
	const schema = `{"type":"object","properties":{"shared":{"type":"number"}}}`
	a, b, c := withSchema(t, schema), withSchema(t, " "+schema), withOutput(t, schema)
	if a.compiled() != b.compiled() || a.compiled() != c.output.of(c.OutputSchema) {
		t.Error("the same schema was compiled twice")
	}
	if other := withSchema(t, `{"type":"object","properties":{"shared":{"type":"string"}}}`); other.compiled() == a.compiled() {
		t.Error("another schema got the same checker")
	}
	runtime.KeepAlive([]*Tool{a, b, c})
}

func TestCheckersGoWithTheirTools(t *testing.T) {
	use := func(tool *Tool) json.RawMessage {
		if _, err := tool.CheckArguments(nil); err != nil {
			t.Fatal(err)
		}
		return tool.InputSchema
	}
	kept := withSchema(t, `{"properties":{"kept":{}}}`)
	use(kept)
	dropped := use(withSchema(t, `{"properties":{"dropped":{}}}`))
	for i := 0; cached(dropped); i++ { // cleanups run some time after a collection
		if i == 1000 {
			t.Fatal("the checker of a tool that is gone stays")
		}
		runtime.GC()
		runtime.Gosched()
	}
	if !cached(kept.InputSchema) {
		t.Error("the checker of a tool in use is gone")
	}
	runtime.KeepAlive(kept)
}

func TestCheckersAreSafeForUseByMany(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				tool := &Tool{InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"number"},"x%d":{}}}`, j%5))}
				if _, err := tool.CheckArguments(json.RawMessage(`{"a":"x"}`)); err == nil {
					t.Error("not checked")
				}
				if i == 0 && j%10 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}
