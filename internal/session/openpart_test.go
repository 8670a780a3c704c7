//go:build !embedded

package session

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/scenario"
	"stroppy/internal/workers"
)

// TestOpenPartSaysWhatFailed checks that a worker that cannot open its clients says why, and does not crash.
func TestOpenPartSaysWhatFailed(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "empty.db")
	open := func(settings ...scenario.Setting) error {
		text, err := json.Marshal(assigned{Settings: append([]scenario.Setting{{Key: "db", Value: url}}, settings...)})
		if err != nil {
			t.Fatal(err)
		}
		part, err := OpenPart(t.Context(), &workers.Assignment{Clients: 2, All: 2, Settings: text, LoadID: "x", Run: 1})
		if err == nil {
			t.Fatalf("opened %+v", part)
		}
		return err
	}
	if err := open(scenario.Setting{Key: "workload", Value: "bank"}); !strings.Contains(err.Error(), "there is no bank in this database") {
		t.Errorf("without a bank: %v", err)
	}
	if err := open(scenario.Setting{Key: "workload", Value: "bank"}, scenario.Setting{Key: "nothing", Value: "1", Source: "the run's nothing"}); !strings.Contains(err.Error(), "nothing") {
		t.Errorf("an unknown setting: %v", err)
	}
}
