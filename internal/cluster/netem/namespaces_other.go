//go:build !linux || embedded

package netem

import "errors"

func newBackend() (backend, error) {
	return nil, errors.New("network namespaces need Linux and a build without the tag embedded")
}
