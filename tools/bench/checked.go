package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"stroppy/internal/cluster"
)

// checkRun records a run of a workload on memory:, and measures how fast it is checked.
func (s *suite) checkRun(name, unit, workload, wanted string, args ...string) {
	dir := filepath.Join(s.dir, "recorded")
	defer os.RemoveAll(dir)
	args = append([]string{"run", workload, "--db=memory:", "--seed=1", "--out=" + dir, "--count=" + strconv.Itoa(s.transactions)}, args...)
	s.command(args...)
	s.timeCheck(name, unit, dir, s.transactions, wanted, "")
}

// checkKV measures how fast recorded reads and writes of records are checked.
func (s *suite) checkKV() {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"1,000,000 records, 90 % reads", nil},
		{"1,000,000 records, half reads, Zipfian", []string{"--preset=ycsb-a"}},
	} {
		s.checkRun("check kv: "+c.name, "records", "kv", "≥ 3000000", append(c.args, "--records=1000000", "--value-size=64")...)
	}
}

// checkEvents measures how fast recorded appends are checked, each with its entry.
func (s *suite) checkEvents() {
	s.checkRun("check events: 16 streams", "appends", "events", "≥ 3000000", "--value-size=64")
}

// tenMinutes is the length of the run of which the download and the check shall take less
// than a twentieth.
const tenMinutes = 10 * time.Minute

// download measures the time that the download of the end state and the check take, as a share of the load phase. The
// run is the bank on PostgreSQL. A measurement of less than ten minutes is extrapolated to ten: the accounts stay the
// same, and all else grows with the run.
func (s *suite) download() {
	s.serve(cluster.Alone(nil), func(s *server) {
		const accounts = "--accounts=1000000"
		alone, _ := s.after("--count=1", accounts)
		took, r := s.after("--duration="+s.seconds.String(), accounts)
		name := fmt.Sprintf("download: postgres: 1,000,000 accounts, a run of %v", s.seconds)
		s.row(name+": transactions", "%.0f", float64(r.Drive.Committed), 0, "")
		s.row(name+": download", "%.2f s", took["download"], 0, "")
		s.row(name+": rows downloaded a second", "%.0f", (1e6+2*float64(r.Drive.Committed))/took["download"], 0, "")
		s.row(name+": check", "%.2f s", took["check"], 0, "")
		both := took["download"] + took["check"]
		s.row(name+": share of the run", "%.1f %%", 100*both/s.seconds.Seconds(), 0, wantedOf(s.seconds))
		if s.seconds < tenMinutes {
			fixed := alone["download"] + alone["check"]
			all := fixed + (both-fixed)*tenMinutes.Seconds()/s.seconds.Seconds()
			s.row("download: extrapolated to a run of ten minutes: share of the run", "%.1f %%", 100*all/tenMinutes.Seconds(), 0, "< 5 %")
		}
	})
}

func wantedOf(length time.Duration) string {
	if length < tenMinutes {
		return ""
	}
	return "< 5 %"
}

// after runs the bank, and returns how many seconds each phase of the run took.
func (s *server) after(args ...string) (map[string]float64, *result) {
	r := s.runChecked("bank", append(append(args, "--db="+s.URL()), transfersOnly...)...)
	took := map[string]float64{}
	for _, p := range r.Phases {
		took[p.Name] += p.Seconds
	}
	return took, r
}
