//go:build embedded

package live

import (
	"errors"
	"net/http"
)

// metricsHandler is not in a build with the tag embedded.
func metricsHandler(*Feed, string) (http.Handler, error) {
	return nil, errors.New("this build has no metrics for Prometheus, which its tag embedded leaves out: build it without that tag")
}
