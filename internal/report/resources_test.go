package report

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestResourcesRoundTrip(t *testing.T) {
	cpu, more, rss, big := 0.125, 17.5, int64(4096), int64(1<<40)
	rows := []Resource{
		{Second: 0, ClientCPU: &cpu, ClientRSS: &rss},
		{Second: 7, ClientCPU: &cpu, ClientRSS: &rss, ServersCPU: &more, ServersRSS: &big},
		{Second: 8},
	}
	var text bytes.Buffer
	if err := WriteRows(&text, rows); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRows[Resource](strings.NewReader(text.String()), ResourcesFile)
	if err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("%s\nwas read as %+v, %v", text.String(), got, err)
	}
}

func TestReadResourcesRefuses(t *testing.T) {
	for _, wrong := range []string{"1,2,3,4\n", "x,1,1,1,1\n", "-1,1,1,1,1\n", "1,NaN,1,1,1\n", "1,-1,1,1,1\n", "1,1,1.5,1,1\n", "1,1,1,1,-2\n", "\"1,1\n"} {
		rows, err := ReadRows[Resource](strings.NewReader(strings.Join(resourceNames(), ",")+"\n"+wrong), ResourcesFile)
		if err == nil {
			t.Errorf("%q was read as %+v", wrong, rows)
		} else if text := err.Error(); !strings.Contains(text, "resources.csv") || strings.Contains(text, "\n") {
			t.Errorf("of %q is said %q", wrong, text)
		}
	}
}

func FuzzReadResources(f *testing.F) {
	f.Add(strings.Join(resourceNames(), ",") + "\n0,0.100,1,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := ReadRows[Resource](strings.NewReader(text), ResourcesFile)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteRows(&out, rows); err != nil {
			t.Fatal(err)
		}
		again, err := ReadRows[Resource](&out, ResourcesFile)
		if err != nil || len(again) != len(rows) {
			t.Errorf("%q is read as %d rows and then as %d, %v", text, len(rows), len(again), err)
		}
	})
}

func resourceNames() []string {
	_, names := columnsOf[Resource]()
	return names
}
