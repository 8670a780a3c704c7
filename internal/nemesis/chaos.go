package nemesis

import (
	"context"
	"errors"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// chaosFile is the argument of chaos: a file with objects of Chaos Mesh.
type chaosFile string

func (f chaosFile) String() string { return quote(string(f)) }

func chaosKind() kind {
	return kind{
		word: "chaos", usage: "chaos 'FILE'",
		about: "apply the Chaos Mesh objects of a YAML file in the namespace of a cluster in Kubernetes; healed by their deletion",
		able: func(e effect, s *state, _ []cluster.Node) error {
			c, ok := s.cluster.(ChaosTaker)
			if !ok {
				return errors.New("only a cluster in Kubernetes, k8s/KIND:N, takes objects of Chaos Mesh")
			}
			return c.ChaosFile(string(e.arg.(chaosFile)))
		},
		read: func(e *effect, r *reader) error {
			var file string
			if quoted(r.peek()) {
				file = unquote(r.take())
			}
			if strings.TrimSpace(file) == "" {
				return errors.New("chaos takes a file in single quotes, as in chaos 'io.yaml'")
			}
			e.arg = chaosFile(file)
			return nil
		},
		plan: func(e effect, s *state, _ situation) (*injection, error) {
			file := string(e.arg.(chaosFile))
			return &injection{target: file, inject: func(ctx context.Context) (fault.Effect, error) {
				return s.cluster.(ChaosTaker).Chaos(ctx, file)
			}}, nil
		},
	}
}
