//go:build !linux || embedded

package cluster

import "errors"

// What faults of networks, disks and clocks need, and is elsewhere than in a build for Linux without
// the tag embedded.
const elsewhere = " need Linux and a build without the tag embedded"

func newBackend() (backend, error) { return nil, errors.New("network namespaces" + elsewhere) }

func steerable(string) (library string, why error) {
	return "", errors.New("clocks that are steered" + elsewhere)
}

// newService returns a service that refuses whatever it is asked.
func newService(Pipes) service { return noService{} }

type noService struct{}

func (noService) Close() error { return nil }

func (noService) ask(string, any) <-chan answer {
	answers := make(chan answer, 1)
	answers <- answer{err: errors.New("file systems with faults" + elsewhere)}
	return answers
}
