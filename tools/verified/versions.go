package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The table of engines by version, and what it is made from.
const (
	versionsFile  = "data/versions.json"
	versionsPage  = "docs/tables/versions.md"
	versionsFirst = "<!-- versions: written by tools/verified -->"
	versionsLast  = "<!-- end of versions -->"
	versionsTest  = "TestVersions/"
	failover      = "fail-over"
)

// server is one server of a version, and what came out where the whole matrix ran on it.
type server struct {
	Name      string            `json:"name"` // as scripts/versions.sh has it
	From      string            `json:"from"` // who has it
	Database  string            `json:"database,omitempty"`
	Version   string            `json:"version,omitempty"`
	Date      string            `json:"date"`
	Cells     map[string]counts `json:"cells"`               // by workload
	Failovers []string          `json:"failovers,omitempty"` // those that came out as they must
	Differs   []string          `json:"differs,omitempty"`   // cells and fail-overs that did not

	named bool // by the test: what was tested is beside the database that answers
}

// counts are how many cells of the matrix ran, and of how many the verdict was as it must be.
type counts struct {
	Ran int `json:"ran"`
	As  int `json:"as_must_be"`
}

// serversOf returns the servers on which the whole matrix ran, by a test log.
func serversOf(log []event) (list []server) {
	found, outcomes := map[string]*server{}, map[string]map[string]string{}
	for _, e := range log {
		test, isVersion := strings.CutPrefix(e.Test, versionsTest)
		if !isVersion {
			continue
		}
		name, cell, _ := strings.Cut(test, "/")
		type version struct {
			server
			Whole bool `json:"whole"`
		}
		// A server that is reported again has some of its cells run again, and the last outcome counts.
		if v, said := reported[version](&e, "version"); said && v.Whole && found[name] == nil {
			v.server.named = v.server.Database != ""
			v.server.Date = e.Time.Format(time.DateOnly)
			found[name], outcomes[name] = &v.server, map[string]string{}
		}
		s := found[name]
		if s == nil {
			continue
		}
		clusterName := s.named || strings.HasPrefix(cell, failover) // a cluster may call itself otherwise
		if v, said := reported[evidence](&e, "verified"); said && (s.Database == "" || !clusterName) {
			s.Database, s.Version = v.Database, cmp.Or(number.FindString(v.Version), v.Version)
		}
		if cell == "" && e.Action == "skip" { // a library that this build has not
			delete(found, name)
			continue
		}
		if cell == "" && e.Action == "fail" && len(outcomes[name]) == 0 {
			s.Differs = []string{"it did not start"}
		}
		if cell != "" && !strings.Contains(cell, "/") && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			outcomes[name][cell] = e.Action
		}
	}
	for name, s := range found {
		s.count(outcomes[name])
		list = append(list, *s)
	}
	return list
}

// count counts the outcomes of cells and fail-overs by their names.
func (s *server) count(outcomes map[string]string) {
	s.Cells = map[string]counts{}
	for cell, outcome := range outcomes {
		if outcome == "skip" {
			continue
		}
		cell = strings.ReplaceAll(cell, "_", " ")
		what, rest, _ := strings.Cut(cell, " ")
		if outcome == "fail" {
			s.Differs = append(s.Differs, cell)
		} else if what == failover {
			s.Failovers = append(s.Failovers, rest)
		}
		if what != failover {
			c := s.Cells[what]
			c.Ran++
			if outcome == "pass" {
				c.As++
			}
			s.Cells[what] = c
		}
	}
	slices.Sort(s.Failovers)
	slices.Sort(s.Differs)
}

// addServers adds newer servers, which replace servers of the same names.
func addServers(servers, newer []server) []server {
	for _, s := range newer {
		servers = slices.DeleteFunc(servers, func(old server) bool { return old.Name == s.Name })
		servers = append(servers, s)
	}
	slices.SortFunc(servers, func(a, b server) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Database), strings.ToLower(b.Database)), compareVersions(a.Version, b.Version), cmp.Compare(a.Name, b.Name))
	})
	return servers
}

// compareVersions compares numbers with points between.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		m, _ := strconv.Atoi(a)
		n, _ := strconv.Atoi(b)
		return cmp.Compare(m, n)
	})
}

// versionsTable is the servers in Markdown.
func versionsTable(servers []server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| database | version | from | %s | fail-over | verdicts | date |\n|---|---|---|%s---|---|---|\n",
		strings.Join(workloads, " | "), strings.Repeat("---|", len(workloads)))
	for _, s := range servers {
		fmt.Fprintf(&b, "| %s | %s | %s |", cmp.Or(s.Database, s.Name), s.Version, s.From)
		for _, w := range workloads {
			text := "none"
			if c := s.Cells[w]; c.Ran > 0 {
				text = fmt.Sprintf("%d of %d", c.As, c.Ran)
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		verdicts := "as they must be"
		if len(s.Cells) == 0 && len(s.Failovers) == 0 && len(s.Differs) == 0 {
			verdicts = "not known"
		} else if len(s.Differs) > 0 {
			verdicts = "not as they must be: " + strings.Join(s.Differs, "; ")
		}
		fmt.Fprintf(&b, " %s | %s | %s |\n", cmp.Or(strings.Join(s.Failovers, "; "), "none"), verdicts, s.Date)
	}
	return b.String()
}
