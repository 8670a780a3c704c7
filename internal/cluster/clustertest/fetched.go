package clustertest

import (
	"net/url"
	"os"
	"path/filepath"
)

// VersionsVariable of the environment names the folder that scripts/versions.sh has filled.
const VersionsVariable = "STROPPY_TEST_VERSIONS"

// Fetched are the parameters with which a cluster takes a product's programs from that folder,
// of several those of the last name; nil where it has none, so that what is installed counts.
func Fetched(product string) url.Values {
	folder := os.Getenv(VersionsVariable)
	if folder == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(folder, product+"-*", "bin"))
	if err != nil || len(found) == 0 {
		return nil
	}
	return url.Values{"bin": {found[len(found)-1]}}
}
