package output

import (
	"cmp"
	"encoding/xml"
	"io"
	"strings"

	"stroppy/internal/report"
)

// The elements of JUnit's XML, as CI systems read it
// (https://github.com/testmoapp/junitxml describes what is common to them).
type testSuites struct {
	XMLName xml.Name    `xml:"testsuites"`
	Suites  []testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Errors   int     `xml:"errors,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     float64 `xml:"time,attr"` // in seconds
	Started  string  `xml:"timestamp,attr,omitempty"`

	Properties *[]property `xml:"properties>property"` // the cause of an invalid verdict
	Cases      []testCase  `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *message `xml:"failure"`
	Error   *message `xml:"error"`
	Skipped *message `xml:"skipped"`
}

type message struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"` // who is responsible for a violation
	Text    string `xml:",chardata"`
}

func said(detail string) *message {
	first, rest, _ := strings.Cut(detail, "\n")
	return &message{Message: first, Text: rest}
}

// writeJUnit writes a suite for each run, with a test case for the verdict, for each check and for each objective. A
// check outside the verdict is skipped. An undecided check is an error, and never a success. Runs of one directory
// have a suite before theirs, which reports whether all of them were made.
func writeJUnit(w io.Writer, set *Set) error {
	var all testSuites
	if whole := set.Whole; whole != nil && whole.Name != "" {
		s, made := testSuite{Name: whole.Name}, testCase{Name: "finished", Class: whole.Kind}
		if whole.Missing != "" {
			made.Error = said(whole.Missing)
		}
		s.add(made)
		all.Suites = append(all.Suites, s)
	}
	for _, r := range set.Runs {
		all.Suites = append(all.Suites, suite(r))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *testSuite) add(c testCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func suite(r Run) testSuite {
	s := testSuite{Name: cmp.Or(r.Dir, strings.Join(r.Lead, " ")), Started: r.Result.StartedAt}
	for _, p := range r.Result.Phases {
		s.Time += p.Seconds
	}
	class := strings.Trim(r.Result.Workload+"."+r.Step, ".")
	if r.Result.Workload == "" {
		class = "run"
	}
	verdict := testCase{Name: "verdict", Class: class}
	switch r.Result.Verdict {
	case "valid":
	case "invalid":
		verdict.Failure = said(r.Result.Reason)
		if k := r.Result.Cause; k != nil {
			verdict.Failure.Type, verdict.Failure.Text = k.Culprit, k.CulpritText+"\n"+k.Cure
			s.Properties = &[]property{{"cause", k.Kind}, {"culprit", k.Culprit}, {"cure", k.Cure}}
		}
	default:
		verdict.Error = said(r.Result.Reason)
	}
	s.add(verdict)
	for _, c := range r.Result.Checks {
		one := testCase{Name: c.Name, Class: class + ".check"}
		switch {
		case c.Status == "valid" && c.Required:
		case !c.Required:
			one.Skipped = said("not claimed, and " + c.Status + ": " + c.Detail)
		case c.Status == "invalid":
			one.Failure = said(c.Detail)
		case c.Status == "unknown":
			one.Error = said(c.Detail)
		default:
			one.Skipped = said(c.Detail)
		}
		s.add(one)
	}
	for _, o := range r.Result.Objectives {
		one := testCase{Name: o.Name, Class: class + ".objective"}
		switch o.Status {
		case report.ObjectiveMet:
		case report.ObjectiveMissed:
			one.Failure = said(o.Detail)
		default:
			one.Error = said(o.Detail)
		}
		s.add(one)
	}
	return s
}
