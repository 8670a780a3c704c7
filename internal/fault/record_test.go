package fault

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

// TestSecondsSurviveJSONExactly checks that no time of up to 20 days changes when it is written and read.
func TestSecondsSurviveJSONExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		want := Seconds(random.Int64N(int64(20 * 24 * time.Hour)))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Seconds
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%d ns is %d ns after a round trip by %s: %v", want, got, text, err)
		}
	}
}

func TestParseSecondsFromJSON(t *testing.T) {
	for text, want := range map[string]Seconds{"20.012": 20_012_000_000, "0": 0, "5": 5_000_000_000, "0.000000001": 1, "-1.5": -1_500_000_000} {
		var got Seconds
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %d ns, want %d: %v", text, got, want, err)
		}
		if again, _ := json.Marshal(got); string(again) != text && text != "0.000000001" {
			t.Errorf("%s is written as %s", text, again)
		}
	}
	for _, text := range []string{"1e10", "-1e300", `"5"`, "{}"} {
		if err := json.Unmarshal([]byte(text), new(Seconds)); err == nil {
			t.Errorf("%s is read as a number of seconds", text)
		}
	}
}
