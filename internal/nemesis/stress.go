package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// mostProcesses bounds the processes beside a node, each of which must be seen to compute.
const mostProcesses = 256

// processes is the argument of stress; 0: one for each processor.
type processes int

func (p processes) String() string {
	if p == 0 {
		return ""
	}
	return "by " + strconv.Itoa(int(p))
}

func stressKind() kind {
	return kind{
		word: "stress", usage: "stress TARGET [by N]", also: []string{"cpu"},
		about: "start N processes that only compute, by default one per processor, in the node's own share of the processors",
		read:  readProcesses, claims: partProcessor,
		able: fit("nothing can take part in the share of the processors that this kind of node has", "the processors of %s cannot be taken up: %w", Processor.Stressable),
		inject: func(ctx context.Context, e effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return n.(Processor).Stress(ctx, int(e.arg.(processes)))
		},
	}
}

func readProcesses(e *effect, r *reader) error {
	e.arg = processes(0)
	if !r.word("by") {
		return nil
	}
	t := r.argument()
	count, err := strconv.Atoi(t)
	switch {
	case t == "":
		return errors.New(`after "by" the number of processes is missing, such as 4: write stress TARGET by 4`)
	case errors.Is(err, strconv.ErrSyntax):
		return fmt.Errorf("%q is no number of processes: write it as 4", clip(t))
	case err != nil || count < 1 || count > mostProcesses:
		return fmt.Errorf("%s processes are out of bounds: the number must be between 1 and %d", clip(t), mostProcesses)
	}
	e.arg = processes(count)
	return nil
}
