package scenario

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"stroppy/internal/nemesis"
)

// hidden stands where a secret was.
const hidden = "xxxxx"

// unreadable stands for an address of which nothing can be shown safely.
const unreadable = "(an address that could not be read)"

// Redact returns a database's URL without passwords, before the @ or in a parameter. It also takes URLs that net/url
// refuses, such as several hosts with ports. If it cannot find the secret part, it returns the scheme alone.
func Redact(raw string) string {
	a, ok := parseAddress(raw)
	switch {
	case raw == "":
		return ""
	case ok:
		return a.String(hidden)
	case a.scheme == "":
		return unreadable
	}
	return a.scheme + ":" + hidden
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

// RedactedURL reports whether the URL contains the mask of Redact.
func RedactedURL(raw string) bool {
	a, _ := parseAddress(raw)
	return slices.Contains(a.secrets, hidden)
}

// Masked reports whether a secret was taken out of a text.
func Masked(text string) bool { return strings.Contains(text, hidden) }

// Includes reports whether a line of a recorded script has the fault with this text. It cannot be
// known if a secret was taken out of one of them.
func Includes(line, text string) bool {
	if Masked(line) || Masked(text) {
		return true
	}
	fault, err := nemesis.Parse(line)
	return err == nil && fault.Has(text)
}

// address holds a database's URL in parts, each as it was written.
type address struct {
	scheme  string
	body    string // user and hosts behind "//", with a mask for the password
	path    string
	query   []parameter
	secrets []string // every secret found, as written and decoded
}

type parameter struct {
	text   string // as written, up to the secret
	secret bool
}

// files holds the schemes whose text is the path of a file.
var files atomic.Pointer[[]string]

// ShowFiles sets the schemes whose text is a path. The text behind any other scheme without // is never shown,
// because it may be a password.
func ShowFiles(schemes []string) { files.Store(&schemes) }

// parseAddress splits raw into parts. If it fails, only the scheme may be shown, and secrets holds every possible
// secret.
func parseAddress(raw string) (a address, ok bool) {
	scheme, rest, found := strings.Cut(raw, ":")
	if !found || !isScheme.MatchString(scheme) {
		a.secrets = guesses(raw)
		return a, false
	}
	a.scheme = scheme
	if ok = !strings.ContainsFunc(rest, unicode.IsControl); ok {
		rest, ok = a.authority(rest)
	}
	if !ok {
		a.secrets = append(a.secrets, guesses(rest)...)
		return a, false
	}
	path, query, asked := strings.Cut(rest, "?")
	if a.body != "" {
		path, _, _ = strings.Cut(path, "#")
	}
	a.path = path
	return a, !asked || a.parameters(query)
}

// authority reads user, password and hosts, where "//" stands before them, and returns
// the rest. The password ends at the last @ of all, so that one with unescaped
// characters is not shown in part.
func (a *address) authority(text string) (rest string, ok bool) {
	body, slashes := strings.CutPrefix(text, "//")
	if !slashes {
		path, _, _ := strings.Cut(text, "?")
		known := files.Load()
		if ok = path == "" || known != nil && slices.Contains(*known, a.scheme); !ok {
			a.secret(path)
		}
		return text, ok
	}
	a.body = "//"
	if at := strings.LastIndexByte(body, '@'); at >= 0 {
		user, password, has := strings.Cut(body[:at], ":")
		if has {
			a.secret(password)
			user += ":" + hidden
		}
		if strings.ContainsAny(body[:at], "/?#") {
			a.secrets = append(a.secrets, strings.FieldsFunc(password, func(r rune) bool { return strings.ContainsRune("/?#@:", r) })...)
			return body, false
		}
		a.body, body = "//"+user+"@", body[at+1:]
	}
	end := strings.IndexAny(body+"/", "/?#")
	a.body += body[:end]
	return body[end:], areHosts.MatchString(body[:end])
}

func (a *address) parameters(query string) bool {
	query, fragment, _ := strings.Cut(query, "#")
	a.secret(fragment) // perhaps the rest of a password with a # in it
	for piece := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, assigned := strings.Cut(piece, "=")
		name, err := url.QueryUnescape(key)
		switch {
		case err != nil:
			a.secret(query)
			return false
		case assigned && !isSecret(name):
			a.query = append(a.query, parameter{text: piece})
		case assigned:
			a.secret(value)
			a.query = append(a.query, parameter{text: key + "=", secret: true})
		default: // perhaps the rest of a password with an & in it
			a.secret(piece)
			a.query = append(a.query, parameter{secret: true})
		}
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

// String writes the address with mask for each secret, or without them if it is empty.
func (a *address) String(mask string) string {
	if mask == "" {
		a.body = strings.Replace(a.body, ":"+hidden+"@", "@", 1)
	}
	var query []string
	for _, p := range a.query {
		switch {
		case !p.secret:
			query = append(query, p.text)
		case mask != "":
			query = append(query, p.text+mask)
		}
	}
	shown := a.scheme + ":" + a.body + a.path
	if len(query) > 0 {
		shown += "?" + strings.Join(query, "&")
	}
	return shown
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

// isScheme matches a scheme, areHosts HOST, HOST:PORT and [ADDRESS]:PORT with commas.
var (
	isScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]{0,19}$`)
	areHosts = regexp.MustCompile(`^(` + host + `(,` + host + `)*)?$`)
)

const host = `(\[[0-9a-fA-F:.%]*\](:[0-9]*)?|[^\[,:][^,:]*(:[0-9]*)?|(:[0-9]*)?)`

// isSecret reports whether the parameter of this name may hold a secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "credential", "apikey", "privatekey", "scram", "mechanismproperties"},
		func(part string) bool { return strings.Contains(name, part) })
}
