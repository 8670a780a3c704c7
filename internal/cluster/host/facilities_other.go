//go:build !linux || embedded

package host

import "errors"

// elsewhere is the reason why faults of networks, disks and clocks are not in this build.
const elsewhere = " need Linux and a build without the tag embedded"

func steerable(string) (library string, why error) {
	return "", errors.New("clock faults" + elsewhere)
}

// newService returns a service that refuses every call.
func newService(Pipes) service { return noService{} }

type noService struct{}

func (noService) Close() error { return nil }

func (noService) Call(string, any, any) error {
	return errors.New("file systems with faults" + elsewhere)
}
