package run

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/pace"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
)

// costly is a workload of which each transaction takes as many bytes to check.
type costly struct {
	workload.Workload
	fixed, each int64
}

func (c costly) CheckMemory() (fixed, each int64) { return c.fixed, c.each }

// TestLongRunWarnsAboutMemory compares planned runs with the free memory.
func TestLongRunWarnsAboutMemory(t *testing.T) {
	rate, err := pace.Parse("2000")
	if err != nil {
		t.Fatal(err)
	}
	hour := func(edit func(p *scenario.Plan)) *scenario.Plan {
		p := &scenario.Plan{Scenario: scenario.Scenario{Duration: time.Hour}}
		edit(p)
		return p
	}
	for name, c := range map[string]struct {
		plan *scenario.Plan
		w    workload.Workload
		free int64
		want string
	}{
		"a run that fits":              {hour(func(p *scenario.Plan) { p.Rate = rate }), costly{nil, 1e8, 350}, 3e9, ""},
		"a rate":                       {hour(func(p *scenario.Plan) { p.Rate = rate }), costly{nil, 1e8, 350}, 2e9, "7,200,000 transactions, 350 bytes each; there is room for 5,428,571 transactions"},
		"a count":                      {hour(func(p *scenario.Plan) { p.Count, p.Duration = 1e7, 0 }), costly{nil, 0, 350}, 3e9, "need 3.5 GB of memory, and 3.0 GB are free: 10,000,000 transactions"},
		"a closed loop":                {hour(func(*scenario.Plan) {}), costly{nil, 0, 350}, 3e9, "1h0m0s at 10,000 transactions a second"},
		"bounded":                      {hour(func(*scenario.Plan) {}), costly{nil, 1e8, 0}, 3e9, ""},
		"too many objects":             {hour(func(*scenario.Plan) {}), costly{nil, 4e9, 0}, 3e9, "need 4.0 GB of memory, and 3.0 GB are free"},
		"a workload that does not say": {hour(func(*scenario.Plan) {}), nil, 1, ""},
		"memory that is not known":     {hour(func(*scenario.Plan) {}), costly{nil, 4e9, 0}, 0, ""},
	} {
		got := MemoryWarning(c.plan, c.w, c.free)
		if got == "" != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestHighestSeesValueThatIsGone checks that a value between the first and the last reading counts.
func TestHighestSeesValueThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := []int64{1, 9, 3}
		end := highest(time.Second, func() int64 {
			value := values[0]
			values = values[1:]
			return value
		})
		time.Sleep(1500 * time.Millisecond)
		if most := end(); most != 9 {
			t.Errorf("the highest value is %d", most)
		}
	})
}
