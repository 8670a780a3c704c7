package pgwire

import (
	"fmt"
	"regexp"
)

// products lists servers of this protocol by their version(), such as "CockroachDB OSS v20.1.5
// (x86_64-unknown-linux-gnu, built …)" or "PostgreSQL 11.2-YB-2.20.1.0-b0 on …". The first match counts, because many
// begin with the name of PostgreSQL but do not share its claims and errors.
var products = []struct {
	says   *regexp.Regexp
	name   string
	scheme string // of its driver here; empty: there is none
}{
	{regexp.MustCompile(`^CockroachDB`), "CockroachDB", "cockroach"},
	{regexp.MustCompile(`-YB-`), "YugabyteDB", ""},
	{regexp.MustCompile(`Redshift`), "Amazon Redshift", ""},
	{regexp.MustCompile(`Greenplum`), "Greenplum", ""},
	{regexp.MustCompile(`Materialize`), "Materialize", ""},
	{regexp.MustCompile(`RisingWave`), "RisingWave", ""},
	{regexp.MustCompile(`QuestDB`), "QuestDB", ""},
	{regexp.MustCompile(`openGauss`), "openGauss", ""},
	{regexp.MustCompile(`^PostgreSQL \d`), "PostgreSQL", "postgres"},
}

// refuses returns the reason why a server with this version() is not the product, as a clause after its address, or
// an empty string. A server without version() has an empty version.
func refuses(product, version string) string {
	for _, p := range products {
		switch {
		case !p.says.MatchString(version):
			continue
		case p.name == product:
			return ""
		case p.scheme != "":
			return fmt.Sprintf("the server is %s: write %s:// in place of the scheme", p.name, p.scheme)
		}
		return fmt.Sprintf("the server is %s, whose claims and errors are not known here: take a %s server", p.name, product)
	}
	return fmt.Sprintf("the server does not identify itself as %s: use the address of a %s server", product, product)
}
