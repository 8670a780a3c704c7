package scenario

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// leastAlone is the least length of a secret that is removed without its name before it. A shorter one is a part of
// too many words.
const leastAlone = 4

// assignment finds NAME=value, --name=value and --name value, as they stand in a
// fault, where a single quote within a command is doubled.
var assignment = regexp.MustCompile(`(?i)(["]?)(-{0,2})([a-z0-9_.-]*(?:pass|pwd|secret|token|credential|key)[a-z0-9_.-]*)(=|[ \t]+)` +
	`(''[^']*''|"(?:\\.|[^"\\])*"|(?:\\.|[^\s'"\\;|&<>()])+)`)

// reference matches a value that the shell takes from elsewhere, which reveals nothing.
var reference = regexp.MustCompile(`^"?(\$\w+|\$\{\w+\}|\$\(.*)"?$`)

// planted is a secret in a text.
type planted struct {
	from, at, to int      // where its name begins, where it stands
	values       []string // the secret in each form in which it may be shown
}

// plantedIn returns the secrets in a script's commands: passwords in URLs, and values with a secret name.
func plantedIn(text string) []planted {
	var found []planted
	for _, m := range assignment.FindAllStringSubmatchIndex(text, -1) {
		quoted, dashes, mark, value := m[2] != m[3], text[m[4]:m[5]], text[m[8]:m[9]], text[m[10]:m[11]]
		if mark != "=" && (dashes == "" || strings.HasPrefix(value, "-")) || reference.MatchString(value) {
			continue
		}
		p := planted{from: m[4], at: m[10], to: m[11], values: forms(value)}
		if rest, _, closed := strings.Cut(text[m[10]:], `"`); quoted && mark == "=" && closed { // all of "NAME=value"
			p.to = p.at + len(rest)
			p.values = append(p.values, forms(rest)...)
		}
		found = append(found, p)
	}
	for from := 0; ; {
		at := strings.Index(text[from:], "://")
		if at < 0 {
			return found
		}
		from += at + len("://")
		body, _, _ := strings.Cut(text[from:], "://")
		if end := strings.IndexAny(body, " \t\r\n'\""); end >= 0 {
			body = body[:end]
		}
		user, password, has := strings.Cut(body[:max(0, strings.LastIndexByte(body, '@'))], ":")
		if has && password != "" && !reference.MatchString(password) {
			at := from + len(user) + len(":")
			var a address
			a.secret(password)
			found = append(found, planted{from: from, at: at, to: at + len(password), values: a.secrets})
		}
	}
}

// forms returns the forms in which a value of a command may be shown: as written, without its quotes, and as Go
// quotes it in an error.
func forms(value string) []string {
	bare := value
	for _, mark := range []string{"''", `"`} {
		if inner, ok := strings.CutPrefix(bare, mark); ok {
			bare = strings.TrimSuffix(inner, mark)
			break
		}
	}
	list := []string{bare}
	plain := regexp.MustCompile(`\\(.)`).ReplaceAllString(bare, "$1")
	for _, form := range []string{plain, strings.Trim(strconv.Quote(bare), `"`)} {
		if !slices.Contains(list, form) {
			list = append(list, form)
		}
	}
	return list
}

// CommandScrubber returns what takes the secrets of a script's commands out of a text.
func CommandScrubber(script string) func(string) string {
	masks := map[string]string{}
	for _, p := range plantedIn(script) {
		name := script[p.from:p.at]
		masks[script[p.from:p.to]] = name + hidden
		for _, value := range p.values {
			if value == "" || value == hidden {
				continue
			}
			masks[name+value] = name + hidden
			if len(value) >= leastAlone {
				masks[value] = hidden
			}
		}
	}
	// The longest first, so that no part of one is left where another begins it.
	var list []string
	for _, text := range slices.SortedFunc(maps.Keys(masks), func(x, y string) int { return cmp.Or(len(y)-len(x), cmp.Compare(x, y)) }) {
		list = append(list, text, masks[text])
	}
	return strings.NewReplacer(list...).Replace
}

// RedactScript returns the faults without secrets, which may not be executable any more. It reports whether it
// removed a secret.
func RedactScript(script string) (shown string, removed bool) {
	shown = CommandScrubber(script)(script)
	return shown, shown != script
}

// RedactCommand is like RedactScript for a command that stands alone, where no quote is doubled.
func RedactCommand(command string) (shown string, removed bool) {
	shown, removed = RedactScript(strings.ReplaceAll(command, "'", "''"))
	return strings.ReplaceAll(shown, "''", "'"), removed
}

// secretName matches the name of a variable that holds a secret.
var secretName = regexp.MustCompile(`(?i)pass|pwd|secret|token|credential|(^|_)key($|_)`)

// EnvironmentScrubber returns a function that removes the secrets of an environment from the output of commands: the
// values of variables with a secret name, and passwords in URLs.
func EnvironmentScrubber(environ []string) func(string) string {
	var values []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if secretName.MatchString(name) && name != "PWD" && name != "OLDPWD" { // these two are folders
			values = append(values, value)
		}
		if strings.Contains(value, "://") {
			a, _ := parseAddress(value)
			values = append(values, a.secrets...)
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < leastAlone })
	slices.SortFunc(values, func(x, y string) int { return len(y) - len(x) })
	var list []string
	for _, value := range values {
		list = append(list, value, hidden)
	}
	return strings.NewReplacer(list...).Replace
}

// FaultRedacted reports whether RedactScript removed a secret of the fault.
func FaultRedacted(fault string) bool {
	return slices.ContainsFunc(plantedIn(fault), func(p planted) bool { return slices.Contains(p.values, hidden) })
}
