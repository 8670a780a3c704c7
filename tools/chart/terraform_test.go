package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const terraformFolder = "../../deploy/terraform"

// TestTerraformExampleParses checks that the example parses, and all that it refers to is declared in it. Neither
// Terraform nor a provider runs here, so that the names of a provider's arguments are not checked.
func TestTerraformExampleParses(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(terraformFolder, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of Terraform in %s: %v", terraformFolder, err)
	}
	declared := map[string]bool{"path.module": true}
	used := map[string]string{}
	parser := hclparse.NewParser()
	for _, file := range files {
		parsed, diagnostics := parser.ParseHCLFile(file)
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics)
		}
		body := parsed.Body.(*hclsyntax.Body)
		for _, block := range body.Blocks {
			switch block.Type {
			case "variable":
				declared["var."+block.Labels[0]] = true
			case "resource":
				declared[strings.Join(block.Labels, ".")] = true
			case "data":
				declared["data."+strings.Join(block.Labels, ".")] = true
			}
		}
		_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
			if expression, ok := node.(*hclsyntax.ScopeTraversalExpr); ok {
				used[referred(expression.Traversal)] = expression.Range().String()
			}
			return nil
		})
	}
	for name, where := range used {
		// Keys of objects and of provider requirements look like a reference of one word.
		if strings.Contains(name, ".") && !declared[name] {
			t.Errorf("%s: %s is not declared", where, name)
		}
	}
	for name := range declared {
		if strings.HasPrefix(name, "var.") && used[name] == "" {
			t.Errorf("%s is declared and not used", name)
		}
	}
}

// referred is the name of the block that an expression refers to.
func referred(traversal hcl.Traversal) string {
	var words []string
	for _, step := range traversal {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			words = append(words, step.Name)
		case hcl.TraverseAttr:
			words = append(words, step.Name)
		}
	}
	most := 2
	if words[0] == "data" {
		most = 3
	}
	return strings.Join(words[:min(most, len(words))], ".")
}

// TestTerraformSetsOnlyChartValues checks that the values that the example sets are the chart's.
func TestTerraformSetsOnlyChartValues(t *testing.T) {
	parsed, diagnostics := hclparse.NewParser().ParseHCLFile(filepath.Join(terraformFolder, "main.tf"))
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	var keys []string
	for _, block := range parsed.Body.(*hclsyntax.Body).Blocks {
		if !slices.Equal(block.Labels, []string{"helm_release", "stroppy"}) {
			continue
		}
		_ = hclsyntax.VisitAll(block.Body.Attributes["values"].Expr, func(node hclsyntax.Node) hcl.Diagnostics {
			if object, ok := node.(*hclsyntax.ObjectConsExpr); ok {
				for _, item := range object.Items {
					keys = append(keys, hcl.ExprAsKeyword(item.KeyExpr))
				}
			}
			return nil
		})
	}
	text, err := os.ReadFile("../../deploy/helm/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var known []string
	for name, one := range schema.Properties {
		known = append(known, name)
		for name := range one.Properties {
			known = append(known, name)
		}
	}
	if len(keys) < 5 {
		t.Errorf("the example sets only %q", keys)
	}
	for _, key := range keys {
		if !slices.Contains(known, key) {
			t.Errorf("the example sets %q, which is no value of the chart", key)
		}
	}
}
