package live

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	schemas "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// TestDashboardSatisfiesGrafanasSchema validates the dashboard with Grafana's schema of dashboards, panels and queries:
// no field is missing or unknown.
func TestDashboardSatisfiesGrafanasSchema(t *testing.T) {
	panels := cog.NewRuntime()
	for _, kind := range []func() variants.PanelcfgConfig{stat.VariantConfig, heatmap.VariantConfig, timeseries.VariantConfig, statetimeline.VariantConfig} {
		panels.RegisterPanelcfgVariant(kind())
	}
	panels.RegisterDataqueryVariant(prometheus.VariantConfig())
	data, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	refusal := func(data []byte) string {
		//lint:ignore SA1019 The file is of the classic schema, which every Grafana imports; dashboardv2 is of Grafana 12 alone.
		var d schemas.Dashboard
		if err := d.UnmarshalJSONStrict(data); err != nil && err.Error() != "" { // a list of errors, which may be empty
			return err.Error()
		}
		if err := d.Validate(); err != nil {
			return err.Error()
		}
		return ""
	}
	if why := refusal(data); why != "" {
		t.Errorf("Grafana's schema refuses it:\n%s", why)
	}
	wrong := strings.Replace(string(data), `"graphMode"`, `"graphModus"`, 1)
	if refusal([]byte(wrong)) == "" {
		t.Error("the schema takes a field that there is not")
	}
}

// unitOf returns the unit of an expression's result.
func unitOf(expression string) string {
	switch {
	case strings.Contains(expression, "_duration_seconds"):
		return "s"
	case strings.Contains(expression, "_bytes"):
		return "bytes"
	case strings.Contains(expression, "process_cpu_seconds_total"):
		return "short" // seconds a second
	case strings.Contains(expression, "rate(") || strings.Contains(expression, "_target_rate"):
		return "ops"
	}
	return "short"
}

// TestPanelsHaveOneUnit checks that all lines of a panel have the unit of its axis.
func TestPanelsHaveOneUnit(t *testing.T) {
	data, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title       string
			Targets     []struct{ Expr string }
			FieldConfig struct {
				Defaults  struct{ Unit string }
				Overrides []struct{ Properties []struct{ ID string } }
			}
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		unit := strings.Replace(p.FieldConfig.Defaults.Unit, "none", "short", 1)
		for _, target := range p.Targets {
			if want := unitOf(target.Expr); unit != want {
				t.Errorf("the panel %q has the unit %q, and %s has %q", p.Title, unit, target.Expr, want)
			}
		}
		for _, o := range p.FieldConfig.Overrides {
			for _, property := range o.Properties {
				if property.ID == "unit" || property.ID == "custom.axisPlacement" {
					t.Errorf("the panel %q has a second axis or unit", p.Title)
				}
			}
		}
		if len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
	}
}
