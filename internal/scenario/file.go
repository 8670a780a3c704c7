package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"stroppy/internal/setting"
)

// MaxFile is the largest scenario file that is read, in bytes.
const MaxFile = 64 << 10

// File reads the settings in a YAML scenario: one mapping of keys to plain
// values. name is the file's name, for errors.
func (w Workloads) File(name string, data []byte) ([]Setting, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes: that is no scenario", name, MaxFile)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("%s is not YAML: %s", name, strings.TrimPrefix(first, "yaml: "))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s holds more than one YAML document: a scenario is one", name)
	}
	return w.settings(name, &document)
}

func (w Workloads) settings(name string, document *yaml.Node) ([]Setting, error) {
	root := document
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s line %d: a scenario is a list of lines of the form key: value", name, root.Line)
	}
	var list []Setting
	keys, first := w.Keys(), map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s line %d: a key must be a plain name", name, key.Line)
		}
		source := fmt.Sprintf("%s line %d: %s", name, key.Line, clip(key.Value))
		if line, twice := first[key.Value]; twice {
			return nil, fmt.Errorf("%s stands twice: line %d has it already", source, line)
		}
		first[key.Value] = key.Line
		found := slices.IndexFunc(keys, func(k Key) bool { return k.Name == key.Value })
		if found < 0 {
			return nil, w.Unknown(source, key.Value)
		}
		text, err := plain(value, &keys[found].Setting)
		if err != nil {
			return nil, fmt.Errorf("%s %w", source, err)
		}
		list = append(list, Setting{Key: key.Value, Value: text, Source: source})
	}
	return list, nil
}

// plain returns a value as text; a list is its lines, where the key has some.
func plain(value *yaml.Node, s *setting.Setting) (string, error) {
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
		return value.Value, nil
	case value.Kind != yaml.SequenceNode || !s.Lines:
		return "", errors.New("must have one plain value after the colon")
	}
	var all []string
	for _, item := range value.Content {
		if item.Kind == yaml.MappingNode && s.Item != nil {
			fields := map[string]string{}
			if err := item.Decode(&fields); err != nil {
				return "", errors.New("must have one plain value for each name in its list")
			}
			line, err := s.Item(fields)
			if err != nil {
				return "", err
			}
			all = append(all, line)
			continue
		}
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return "", errors.New("must have plain values in its list")
		}
		all = append(all, item.Value)
	}
	return strings.Join(all, "\n"), nil
}

// YAML returns the scenario as a file that File reads back to the same settings. The file has no password and no keys
// of one run on one machine.
func (s *Scenario) YAML() []byte {
	var out bytes.Buffer
	out.WriteString("# The effective configuration of a run of stroppy; `stroppy run --scenario FILE` repeats it.\n")
	if s.Scale.By > 0 {
		fmt.Fprintf(&out, "# Scaled down by %s: what is below was divided already.\n", setting.Number(s.Scale.By))
	}
	var without []string
	for _, k := range s.Settings() {
		value, removed := k.Get(), false
		if !k.Local && value == "" {
			without = append(without, k.Name)
		}
		if k.Local || value == "" {
			continue
		}
		switch k.Name {
		case "db":
			if value, removed = WithoutSecrets(value); removed {
				out.WriteString("# The password is not kept: give it in PGPASSWORD, or the whole URL in STROPPY_DB.\n")
			}
		case "nemesis", "probe":
			redact := RedactScript
			if k.Name == "probe" {
				redact = RedactCommand
			}
			if value, removed = redact(value); removed {
				out.WriteString("# Secrets in commands are not kept: put each back where " + hidden + " stands, or name a variable there, as in PGPASSWORD=$PGPASSWORD.\n")
			}
		}
		switch {
		case value == "":
		case k.Lines:
			fmt.Fprintf(&out, "%s:\n", k.Name)
			for line := range strings.SplitSeq(value, "\n") {
				writeItem(&out, &k, line)
			}
		default:
			fmt.Fprintf(&out, "%s: %s\n", k.Name, scalar(value))
		}
	}
	if len(without) > 0 {
		fmt.Fprintf(&out, "# Without a value in this run: %s.\n", strings.Join(without, ", "))
	}
	return out.Bytes()
}

// writeItem writes an item of a list. A field of several lines stands line by line.
func writeItem(out *bytes.Buffer, s *setting.Setting, line string) {
	var fields []setting.Field
	if s.Fields != nil {
		fields = s.Fields(line)
	}
	if len(fields) == 0 {
		fmt.Fprintf(out, "  - %s\n", scalar(line))
		return
	}
	before := "  - "
	for _, f := range fields {
		fmt.Fprintf(out, "%s%s: %s\n", before, f.Name, strings.ReplaceAll(block(f.Value), "\n", "\n    "))
		before = "    "
	}
}

// block writes text as scalar does, and text of several lines as a block where YAML keeps each character of it.
func block(text string) string {
	if !strings.Contains(text, "\n") {
		return scalar(text)
	}
	written, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Value: text, Style: yaml.LiteralStyle})
	var read string
	if err != nil || yaml.Unmarshal(written, &read) != nil || read != text {
		return scalar(text)
	}
	return strings.TrimSuffix(string(written), "\n")
}

// scalar writes text as a YAML value, quoted where YAML would misread it.
func scalar(text string) string {
	node := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if strings.ContainsAny(text, ":#{}[],&*!|>'\"%@`\n\t\\ ") {
		node.Style = yaml.DoubleQuotedStyle
	}
	quoted, err := yaml.Marshal(&node)
	if err != nil {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSuffix(string(quoted), "\n")
}
