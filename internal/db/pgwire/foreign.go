package pgwire

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// foreign lists parameters that other programs put into a URL of PostgreSQL, such as the DATABASE_URL of an
// application. Each becomes a parameter of Stroppy or of the server:
//
//	Prisma  https://www.prisma.io/docs/orm/overview/databases/postgresql#arguments
//	Rails   https://guides.rubyonrails.org/configuring.html#configuring-a-postgresql-database
//	Django  https://github.com/jazzband/dj-database-url
//	JDBC    https://jdbc.postgresql.org/documentation/use/
var foreign = map[string]func(value string) (name, becomes string){
	"schema":              func(value string) (string, string) { return searchPath, identifier(value) },
	"currentSchema":       func(value string) (string, string) { return searchPath, value },
	"schema_search_path":  func(value string) (string, string) { return searchPath, value },
	"encoding":            func(value string) (string, string) { return "client_encoding", value },
	"prepared_statements": func(value string) (string, string) { return "prepare", value },
	"pgbouncer": func(value string) (string, string) {
		if value != "true" {
			return "", ""
		}
		return "prepare", "false"
	},
	"requiressl": func(value string) (string, string) { // of libpq, deprecated
		if value != "1" {
			return "", ""
		}
		return "sslmode", "require"
	},
}

const searchPath = "search_path"

// pools lists parameters of an application's pool of connections. They have no effect, because each client has one
// connection.
var pools = []string{"connection_limit", "pool", "pool_timeout", "conn_max_age", "conn_health_checks"}

// elsewhere lists parameters with another form here.
var elsewhere = map[string]string{
	"timeout":              "write connect_timeout=SECONDS or answer_timeout=10s",
	"socket_timeout":       "write answer_timeout=10s",
	"sslaccept":            "write sslmode=verify-full for strict, or sslmode=require for accept_invalid_certs",
	"sslidentity":          "write the certificate as sslcert=FILE and its key as sslkey=FILE, both in PEM form",
	"statement_cache_size": "write prepare=false for 0, or leave it out",
}

// identifier returns a name as SQL quotes it.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// translate returns a query with the parameters of other programs in the form of libpq. An = in a value needs no
// escape.
func translate(query string) (string, error) {
	var pieces []string
	sources := map[string]string{} // the parameter that a name comes from
	for piece := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(piece, "=")
		if how, there := elsewhere[name]; there {
			return "", fmt.Errorf("no parameter is called %s: %s", name, how)
		}
		if slices.Contains(pools, name) {
			continue
		}
		becomes, known := foreign[name]
		source := name
		if known {
			decoded, err := url.PathUnescape(value)
			if err != nil {
				return "", fmt.Errorf("%s has a %% that begins no escape: write %%25 for a %%", name)
			}
			if name, value = becomes(decoded); name == "" {
				continue
			}
			value = url.PathEscape(value)
		}
		if before := sources[name]; before != "" && before != source {
			return "", fmt.Errorf("%s and %s are given, and both set %s: leave one of them out", before, source, name)
		}
		sources[name] = source
		if value = strings.ReplaceAll(value, "=", "%3D"); value != "" || strings.Contains(piece, "=") {
			name += "="
		}
		pieces = append(pieces, name+value)
	}
	return strings.Join(pieces, "&"), nil
}

// valueOf returns the value of a parameter as it is written, or an empty string.
func valueOf(query, name string) string {
	for piece := range strings.SplitSeq(query, "&") {
		if text, found := strings.CutPrefix(piece, name+"="); found {
			return text
		}
	}
	return ""
}
