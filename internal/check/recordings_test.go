package check

import (
	"strings"
	"testing"

	"stroppy/internal/history"
)

func TestSameDataRefusesDifferentDataSets(t *testing.T) {
	one := history.Header{Workload: "bank", Run: 1, LoadID: "A", Seed: 5, Objects: 10, Total: 7, Database: "SQLite"}
	for name, tc := range map[string]struct {
		bend func(h *history.Header)
		says string
	}{
		"alike":        {func(*history.Header) {}, ""},
		"end state":    {func(h *history.Header) { h.Run, h.Keys = 1, map[string]string{KeyDrive: DriveNone} }, ""},
		"same run":     {func(h *history.Header) { h.Run = 1 }, "both of run 1"},
		"seed":         {func(h *history.Header) { h.Seed = 6 }, "different data sets"},
		"accounts":     {func(h *history.Header) { h.Objects = 11 }, "different data sets"},
		"load":         {func(h *history.Header) { h.LoadID = "B" }, "different loads"},
		"older":        {func(h *history.Header) { h.LoadID = "" }, "different loads"},
		"database":     {func(h *history.Header) { h.Database = "etcd" }, "recorded on SQLite"},
		"the workload": {func(h *history.Header) { h.Workload = "tpcb" }, "has the workload"},
	} {
		other := one
		other.Run = 2
		tc.bend(&other)
		err := SameData([]string{"a", "b"}, []history.Header{one, other})
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
