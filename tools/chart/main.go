// Chart renders a Helm chart with Helm's own engine and prints the objects as YAML: chart FOLDER
// NAME NAMESPACE [VALUES.yaml]. It asks no cluster for anything. Values that the chart's schema
// refuses, and templates that fail, end it with exit code 1.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "chart: %v\n", err)
		os.Exit(1)
	}
}

// run renders the chart of the arguments, as main's comment says.
func run(args []string, out io.Writer) error {
	if len(args) < 3 || len(args) > 4 {
		return errors.New("chart takes FOLDER NAME NAMESPACE [VALUES.yaml]")
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return fmt.Errorf("load the chart %s: %w", args[0], err)
	}
	if err := chart.Validate(); err != nil {
		return fmt.Errorf("load the chart %s: %w", args[0], err)
	}
	values := map[string]any{}
	if len(args) == 4 {
		read, err := common.ReadValuesFile(args[3])
		if err != nil {
			return fmt.Errorf("read the values: %w", err)
		}
		values = read
	}
	release := common.ReleaseOptions{Name: args[1], Namespace: args[2], Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return err
	}
	files, err := (&engine.Engine{Strict: true}).Render(chart, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ".yaml" {
			if _, err := fmt.Fprintf(out, "---\n# %s\n%s\n", name, files[name]); err != nil {
				return err
			}
		}
	}
	return nil
}
