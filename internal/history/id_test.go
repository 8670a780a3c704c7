package history

import (
	"encoding/json"
	"math"
	"testing"
)

// TestIDSurvivesJSON checks that an ID, and any other 64-bit number, survives JSON.
func TestIDSurvivesJSON(t *testing.T) {
	for _, id := range []ID{0, NewID(1, 7, 312), NewID(1<<RunBits-1, 1<<ClientBits-1, 1<<SequenceBits-1), math.MaxUint64} {
		data, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		var got ID
		if err := json.Unmarshal(data, &got); err != nil || got != id {
			t.Errorf("%s came back as %v: %v", data, got, err)
		}
	}
	for _, text := range []string{`""`, `"1-2"`, `"1-2-3-4"`, `"1-131072-0"`, `"32768-0-0"`, `"1-0-x"`, `"1--3"`} {
		if err := json.Unmarshal([]byte(text), new(ID)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
