package internal_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"stroppy/internal/cli"
	"stroppy/internal/fault"
	"stroppy/internal/report"
)

var update = flag.Bool("update", false, "write result.schema.json and scenarios.md in docs anew")

const schemaFile = "../docs/reference/result.schema.json"

// TestResultSchema checks that the published schema has the keys of report.Result, and validates
// results of real runs. Descriptions are the comments of the fields when the schema was written.
func TestResultSchema(t *testing.T) {
	made := resultSchema(t)
	if *update {
		data, err := json.MarshalIndent(made, "", " ")
		if err == nil {
			err = os.WriteFile(schemaFile, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	published := publishedSchema(t)
	if want, got := withoutDescriptions(t, made), withoutDescriptions(t, published); !bytes.Equal(want, got) {
		t.Fatalf("%s does not have the keys of report.Result: go test ./internal -run TestResultSchema -update", schemaFile)
	}
	for name, args := range map[string][]string{
		"valid":   {"--db", "memory:"},
		"invalid": {"--db", "memory:?mutant=lost-update&rate=0.1"},
		"unknown": {"--db", "noop:"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		var out bytes.Buffer
		cli.Main(append([]string{"run", "bank", "--count", "500", "--accounts", "100", "--out", dir}, args...), nil, nil, &out, &out)
		if found := validateResults(t, dir); len(found) != 1 || found[0] != name {
			t.Errorf("%v: the verdicts are %q, want %s\n%s", args, found, name, &out)
		}
	}
}

// TestResultSchemaRefuses checks that the schema refuses a result without a key and one of
// another type.
func TestResultSchemaRefuses(t *testing.T) {
	resolved, err := publishedSchema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{}`, `[]`, `{"schema": 1, "verdict": "valid"}`} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if resolved.Validate(value) == nil {
			t.Errorf("%s is valid", text)
		}
	}
}

// validateResults validates each result.json below a folder, and returns their verdicts.
func validateResults(t *testing.T, dir string) (verdicts []string) {
	t.Helper()
	resolved, err := publishedSchema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != report.FileName {
			return err
		}
		var value map[string]any
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &value)
		}
		if err != nil {
			return err
		}
		if err := resolved.Validate(value); err != nil {
			t.Errorf("%s does not have the published form: %v", path, err)
		}
		verdict, _ := value["verdict"].(string)
		verdicts = append(verdicts, verdict)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return verdicts
}

// resultSchema returns the schema of report.Result, which allows further keys.
func resultSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.For[report.Result](&jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[report.Instance](): {Type: "object", Description: "its keys depend on kind"},
			reflect.TypeFor[fault.Seconds]():   {Type: "number"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	describe(t, schema, reflect.TypeFor[report.Result]())
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", "result.json of Stroppy, schema 1"
	schema.Properties["verdict"].Enum = []any{"valid", "invalid", "unknown"}
	return schema
}

// describe gives each key the comment of its field, and allows further keys.
func describe(t *testing.T, schema *jsonschema.Schema, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer:
		describe(t, schema, typ.Elem())
	case reflect.Slice, reflect.Array:
		describe(t, schema.Items, typ.Elem())
	case reflect.Map:
		describe(t, schema.AdditionalProperties, typ.Elem())
	case reflect.Struct:
		if schema.Properties == nil { // its type has a form of its own
			return
		}
		schema.AdditionalProperties = nil
		comments := fieldComments(t, typ)
		for _, field := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if property := schema.Properties[name]; property != nil {
				property.Description = comments[field.Name]
				describe(t, property, field.Type)
			}
		}
	}
}

// fieldComments returns the comments of the fields of a type of this module.
func fieldComments(t *testing.T, typ reflect.Type) map[string]string {
	t.Helper()
	comments := map[string]string{}
	files, err := filepath.Glob("../" + strings.TrimPrefix(typ.PkgPath(), "stroppy/") + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != typ.Name() {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range body.Fields.List {
					for _, name := range field.Names {
						comments[name.Name] = strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
					}
				}
			}
			return false
		})
	}
	return comments
}

func publishedSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(read(t, schemaFile)), &schema); err != nil {
		t.Fatal(err)
	}
	return &schema
}

// withoutDescriptions returns a schema as JSON without its descriptions and with sorted keys.
func withoutDescriptions(t *testing.T, schema *jsonschema.Schema) []byte {
	t.Helper()
	data, err := json.Marshal(schema)
	var value any
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	var strip func(value any)
	strip = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if _, text := v["description"].(string); text {
				delete(v, "description")
			}
			for key, below := range v {
				if list, ok := below.([]any); ok && key == "required" {
					slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
				}
				strip(below)
			}
		case []any:
			for _, below := range v {
				strip(below)
			}
		}
	}
	strip(value)
	data, err = json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
