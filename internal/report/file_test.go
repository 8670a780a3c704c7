package report

import (
	"bytes"
	"testing"
)

// TestEveryFlippedBitOfAResultIsFound checks that no bit of a result can change unnoticed, and
// that white space between its values may.
func TestEveryFlippedBitOfAResultIsFound(t *testing.T) {
	r := &Result{Schema: Schema, Verdict: "valid", Workload: "bank", Files: map[string]string{"a": noChecksum}}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(text); err != nil {
		t.Fatal(err)
	}
	for i := range 8 * (len(text) - 1) { // the last byte ends the line
		bad := bytes.Clone(text)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := Parse(bad); err == nil {
			t.Errorf("bit %d of byte %d, %q, was not found", i%8, i/8, text[max(0, i/8-20):i/8+1])
		}
	}
	if _, err := Parse(bytes.ReplaceAll(text, []byte("\n  "), []byte("\n\t "))); err != nil {
		t.Error(err)
	}
}
