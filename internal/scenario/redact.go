package scenario

import (
	"net/url"
	"slices"
	"strings"
)

// hidden stands where a secret was.
const hidden = "xxxxx"

// unreadable stands for an address of which nothing can be shown safely.
const unreadable = "(an address that could not be read)"

// Redact returns a database's URL as it may be shown: without passwords, be they
// before the @ or in a parameter. It takes what net/url refuses too, such as
// several hosts with ports. Where it cannot tell what is secret it shows the
// scheme alone.
func Redact(raw string) string {
	if raw == "" {
		return ""
	}
	a, ok := parseAddress(raw)
	if !ok {
		return a.opaque()
	}
	return a.String(hidden)
}

// WithoutSecrets returns the URL with passwords taken out, and whether there
// were any. An address that Redact cannot read gives nothing.
func WithoutSecrets(raw string) (bare string, removed bool) {
	a, ok := parseAddress(raw)
	if !ok {
		return "", true
	}
	return a.String(""), len(a.secrets) > 0
}

// RobbedURL says whether a secret of the URL is the mask that Redact puts there, which
// nobody has replaced by the secret.
func RobbedURL(raw string) bool {
	a, _ := parseAddress(raw)
	return slices.Contains(a.secrets, hidden)
}

// Masked says whether something secret was taken out of a text.
func Masked(text string) bool { return strings.Contains(text, hidden) }

// address is a database's URL in parts, each as it was written.
type address struct {
	scheme  string
	slashes bool // "//" followed the scheme
	user    string
	hosts   string
	path    string
	query   []parameter
	secrets []string // every secret found, as written and decoded
}

type parameter struct {
	text   string // key=value as written, or the key where secret
	secret bool
}

// paths are the schemes whose URL is a file rather than a server, and nameless
// those behind which parameters alone may stand: what else stands there may be a password.
var (
	paths    = []string{"sqlite", "fdb"}
	nameless = []string{"memory", "noop"}
)

// parseAddress takes raw apart. When it fails the scheme alone may be shown; the
// secrets are then all that could be one.
func parseAddress(raw string) (a address, ok bool) {
	scheme, rest, found := strings.Cut(raw, ":")
	if !found || !isScheme(scheme) {
		a.secrets = guesses(raw)
		return a, false
	}
	a.scheme = scheme
	if strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		a.secrets = guesses(rest)
		return a, false
	}
	if body, slashes := strings.CutPrefix(rest, "//"); slashes {
		a.slashes = true
		rest, ok = a.authority(body)
	} else {
		path, _, _ := strings.Cut(rest, "?")
		ok = slices.Contains(paths, scheme) || path == "" && slices.Contains(nameless, scheme)
		if !ok {
			a.secret(path)
		}
	}
	if !ok {
		a.secrets = append(a.secrets, guesses(rest)...)
		return a, false
	}
	path, query, asked := strings.Cut(rest, "?")
	if a.slashes {
		path, _, _ = strings.Cut(path, "#")
	}
	a.path = path
	return a, !asked || a.parameters(query)
}

// authority reads user, password and hosts. The password ends at the last @ of
// all, so that one with unescaped characters is not shown in part.
func (a *address) authority(body string) (rest string, ok bool) {
	if at := strings.LastIndexByte(body, '@'); at >= 0 {
		user, password, has := strings.Cut(body[:at], ":")
		if has {
			a.secret(password)
		}
		if strings.ContainsAny(body[:at], "/?#") {
			a.secrets = append(a.secrets, strings.FieldsFunc(password, func(r rune) bool { return strings.ContainsRune("/?#@:", r) })...)
			return body, false
		}
		a.user, body = user+"@", body[at+1:]
		if has {
			a.user = user + ":" + hidden + "@"
		}
	}
	end := strings.IndexAny(body, "/?#")
	if end < 0 {
		end = len(body)
	}
	a.hosts = body[:end]
	for host := range strings.SplitSeq(a.hosts, ",") {
		if !isHost(host) {
			return body, false
		}
	}
	return body[end:], true
}

func (a *address) parameters(query string) bool {
	query, fragment, _ := strings.Cut(query, "#")
	a.secret(fragment) // perhaps the rest of a password with a # in it
	for piece := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, assigned := strings.Cut(piece, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			a.secret(query)
			return false
		}
		if assigned && !isSecret(name) {
			a.query = append(a.query, parameter{text: piece})
			continue
		}
		if !assigned { // perhaps the rest of a password with an & in it
			key, value = "", piece
		}
		a.secret(value)
		a.query = append(a.query, parameter{text: key, secret: true})
	}
	return true
}

func (a *address) secret(text string) {
	if text == "" {
		return
	}
	a.secrets = append(a.secrets, text)
	if decoded, err := url.PathUnescape(text); err == nil && decoded != text {
		a.secrets = append(a.secrets, decoded)
	}
}

// String writes the address with each secret replaced by mask, or taken out
// where mask is empty.
func (a *address) String(mask string) string {
	var b strings.Builder
	b.WriteString(a.scheme + ":")
	if a.slashes {
		user := a.user
		if mask == "" {
			user = strings.Replace(user, ":"+hidden+"@", "@", 1)
		}
		b.WriteString("//" + user + a.hosts)
	}
	b.WriteString(a.path)
	mark := "?"
	for _, p := range a.query {
		switch {
		case !p.secret:
			b.WriteString(mark + p.text)
		case mask == "":
			continue
		case p.text == "":
			b.WriteString(mark + mask)
		default:
			b.WriteString(mark + p.text + "=" + mask)
		}
		mark = "&"
	}
	return b.String()
}

func (a *address) opaque() string {
	if a.scheme == "" {
		return unreadable
	}
	return a.scheme + ":" + hidden
}

// guesses returns the parts of an unreadable address that may be secret.
func guesses(text string) []string {
	var found []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n@/?&;", r) }) {
		for _, mark := range []string{"=", ":"} {
			if _, value, has := strings.Cut(part, mark); has && value != "" {
				found = append(found, strings.Trim(value, `'"`))
			}
		}
	}
	return found
}

func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || strings.ContainsRune("+-.", r))) {
			return false
		}
	}
	return s != "" && len(s) <= 20
}

// isHost takes name, name:port and [address]:port.
func isHost(s string) bool {
	port := ""
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
		ip, rest, closed := strings.Cut(inner, "]")
		if !closed || strings.Trim(ip, "0123456789abcdefABCDEF:.%") != "" {
			return false
		}
		if rest == "" {
			return true
		}
		if rest[0] != ':' {
			return false
		}
		port = rest[1:]
	} else {
		_, port, _ = strings.Cut(s, ":")
	}
	return strings.Trim(port, "0123456789") == ""
}

// isSecret says whether the parameter of this name may hold a secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "credential", "apikey", "privatekey"},
		func(part string) bool { return strings.Contains(name, part) })
}
