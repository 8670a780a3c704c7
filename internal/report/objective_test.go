package report

import (
	"reflect"
	"strings"
	"testing"

	"stroppy/internal/fault"
)

// TestThresholdsAgainstAResult tries limits against one result, and texts that are no thresholds.
func TestThresholdsAgainstAResult(t *testing.T) {
	r := driven(base("valid", ""))
	d := r.Drive
	d.Outcomes = map[string]*Latency{"all": {P99: 80, Max: 90}}
	d.DueAtLeast = []string{"p99"}
	r.Client = &Client{MaxRSSBytes: number(int64(300 << 20))}
	r.Faults = []fault.Record{{Outage: new(fault.Round(0.8))}, {Outage: new(fault.Round(2.5))}}
	for text, want := range map[string]string{
		"p99<50ms": ObjectiveMet, "p99 < 9.75": ObjectiveMissed, "p99<=9.75ms": ObjectiveMet, "p(99)<0.01s": ObjectiveMet, "p99.9>1s": ObjectiveMissed,
		"latency_ms.p50<1101us": ObjectiveMet, "drive.latency_ms.max>=1s": ObjectiveMet,
		"tps>1000": ObjectiveMet, "tps>20000": ObjectiveMissed, "tps.median>1": ObjectiveMet,
		"aborted<0.01%": ObjectiveMet, "aborted<0.001%": ObjectiveMissed, "unknown<=2": ObjectiveMet, "committed>98%": ObjectiveMet,
		"rejected.insufficient_funds<=1203": ObjectiveMet, "rejected.nothing_of_that_name<1": ObjectiveUnknown,
		"client.max_rss_bytes<1GB": ObjectiveMet, "client.max_rss_bytes<300MB": ObjectiveMissed, "client.max_rss_bytes<=300MiB": ObjectiveMet,
		"client.cpu_seconds<1": ObjectiveUnknown,
		"outage<3s":            ObjectiveMet, "outage<2": ObjectiveMissed, "faults.recovered_s<9s": ObjectiveUnknown, "gap<=2500ms": ObjectiveMet,
		"latency_by_outcome_ms.all.p99<100": ObjectiveUnknown, "latency_by_outcome_ms.all.p99<50": ObjectiveMissed,
		"latency_by_outcome_ms.all.p99>50": ObjectiveMet, "latency_by_outcome_ms.all.p99>100": ObjectiveUnknown, "latency_by_outcome_ms.all.max<100": ObjectiveMet,
	} {
		list, err := ParseThresholds(text)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		if o := list[0].Judge(r); o.Status != want || o.Name != strings.ReplaceAll(text, " ", "") || o.Detail == "" {
			t.Errorf("%s: %+v, and not %s", text, o, want)
		}
	}
	r.Faults = append(r.Faults, fault.Record{})
	for text, want := range map[string]string{"outage<3s": ObjectiveUnknown, "outage<2s": ObjectiveMissed} {
		list, err := ParseThresholds("\n" + text + "\n")
		if err != nil || list[0].Judge(r).Status != want {
			t.Errorf("%s of three faults of which one is not known: %+v, %v", text, list[0].Judge(r), err)
		}
	}
	if list, err := ParseThresholds("p99<1"); err != nil || list[0].Judge(&Result{}).Status != ObjectiveUnknown {
		t.Error("a run without a load phase keeps a limit")
	}
	if list, err := ParseThresholds("aborted<1%"); err != nil || list[0].Judge(&Result{Drive: &Drive{}}).Status != ObjectiveUnknown {
		t.Error("a share of nothing keeps a limit")
	}
	for _, text := range []string{"p98<50ms", "p99", "<5", "p99=5", "p99==5", "p99<", "p99<fast", "p99<5MB", "p99<-1", "p99<NaN", "p99<Inf", "p99<5%", "verdict<1", "seed<5",
		"schema<2", "drive<1", "faults<1", "drive.latency_ms<1", "rejected<1", "client.max_rss_bytes<1XB", "client.max_rss_bytes<1s", "drive.tps.mean.x<1", "identity.run.x<1", "checks.status<1", "p99<5ms<6ms", "drive.<1", ".<1"} {
		if list, err := ParseThresholds(text); err == nil {
			t.Errorf("%q is taken for %+v", text, list)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestThresholdsReachEveryNumber finds each number of a result by its keys, and the value of each.
func TestThresholdsReachEveryNumber(t *testing.T) {
	found := 0
	var visit func(typ reflect.Type, path []string)
	visit = func(typ reflect.Type, path []string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Map:
			visit(typ.Elem(), append(path, "some key"))
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(typ) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.IsExported() && !f.Anonymous && name != "-" {
					visit(f.Type, append(path[:len(path):len(path)], name))
				}
			}
		case reflect.Float64, reflect.Int, reflect.Int64, reflect.Uint64:
			if key := path[0]; key == "schema" || key == "seed" {
				return
			}
			found++
			if got, _, err := findFigure(strings.Join(path, ".")); err != nil || !reflect.DeepEqual(got, path) {
				t.Errorf("%v is found as %v: %v", path, got, err)
			}
			values(reflect.ValueOf(&Result{}).Elem(), path)
		}
	}
	visit(reflect.TypeFor[Result](), nil)
	if found < 80 {
		t.Errorf("there are %d figures", found)
	}
}

func FuzzThreshold(f *testing.F) {
	for _, text := range []string{"p99<50ms", "aborted<=1%", "client.max_rss_bytes>1GiB", "faults.outage_s<1\ntps>5", "p(99.9)<1"} {
		f.Add(text)
	}
	r := driven(base("valid", ""))
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseThresholds(text)
		if err != nil {
			return
		}
		for _, one := range list {
			if o := one.Judge(r); o.Status == "" || o.Detail == "" {
				t.Errorf("%q comes to %+v", text, o)
			}
			if again, err := ParseThresholds(one.String()); err != nil || !reflect.DeepEqual(again, []Threshold{one}) {
				t.Errorf("%q is read back as %+v: %v", one, again, err)
			}
		}
	})
}
