package pgwire

import (
	"strings"
	"testing"
)

// TestSchemeAcceptsOnlyItsProduct checks that each product is accepted by its own scheme only, and unknown
// ones by none.
func TestSchemeAcceptsOnlyItsProduct(t *testing.T) {
	for version, says := range map[string]map[string]string{
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu":         {"PostgreSQL": "", "CockroachDB": "the server is PostgreSQL: write postgres://"},
		"PostgreSQL 9.6.24 on x86_64-pc-linux-gnu":                                 {"PostgreSQL": ""},
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15)":          {"PostgreSQL": "the server is CockroachDB: write cockroach://", "CockroachDB": ""},
		"PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang": {"PostgreSQL": "YugabyteDB, whose claims and errors are not known", "CockroachDB": "YugabyteDB, whose claims"},
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.12103":                {"PostgreSQL": "the server is Amazon Redshift"},
		"CrateDB 5.4.0": {"PostgreSQL": "does not identify itself as PostgreSQL", "CockroachDB": "does not identify itself as CockroachDB"},
		"PostgreSQL":    {"PostgreSQL": "does not identify itself as PostgreSQL"},
		"":              {"PostgreSQL": "does not identify itself as PostgreSQL", "CockroachDB": "does not identify itself as CockroachDB"},
	} {
		for product, want := range says {
			if why := refuses(product, version); (why == "") != (want == "") || !strings.Contains(why, want) || strings.Contains(why, "\n") {
				t.Errorf("%q as %s: %q, want %q", version, product, why, want)
			}
		}
	}
}
