//go:build embedded

package live

import "errors"

// Server does not exist in a build with the tag embedded.
type Server struct{ Options }

// Listen returns an error, because a build with the tag embedded has no HTTP.
func Listen(*Feed, string, Options) (*Server, error) {
	return nil, errors.New("this build has the tag embedded, which leaves out pages and metrics: build it without that tag")
}

func (*Server) Serve() {}

func (*Server) Address() string { return "" }

func (*Server) Loopback() bool { return true }

func (*Server) Close() {}
