//go:build embedded

package live

import "errors"

// Server is never there in a build with the tag embedded.
type Server struct{ Options }

// Listen refuses: HTTP is left out of a build with the tag embedded.
func Listen(*Feed, string, Options) (*Server, error) {
	return nil, errors.New("this build serves neither pages nor metrics, which its tag embedded leaves out: build it without that tag")
}

func (*Server) Serve() {}

func (*Server) Address() string { return "" }

func (*Server) Loopback() bool { return true }

func (*Server) Close() {}
