package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// kinds lists the kinds of faults. Each topic has a file of its own.
func kinds() []kind {
	return slices.Concat(
		processKinds(),
		partitionKinds(),
		linkKinds(),
		machineKinds(),
		diskKinds(),
		memberKinds(),
		customKinds(),
		failoverKinds(),
	)
}

// kind is a kind of fault: its grammar, what it needs of a cluster, and its plan.
type kind struct {
	word    string      // the first word of the text
	usage   string      // for help and for completion
	about   string      // what it does
	further [][2]string // other usages, and what they do
	also    []string    // words of other tools for it, for hints

	// read reads what follows the word. If the fault is one of nodes, the target is read before. Nil:
	// nothing follows.
	read func(*effect, *reader) error
	text func(effect) string // nil: the word, the target and the argument

	able       able
	few        func(effect) (least int, why string) // the fewest nodes, and the error for fewer; nil: any number
	led        func(effect) bool                    // reports whether it needs the leader; nil: if the target does
	needsLayer bool                                 // the cluster must be started with a file system of ours
	needsClock bool                                 // the cluster must be started with clocks that can be steered
	heals      healing
	// plan chooses the nodes. It is called when the injection is due, with the state locked,
	// and must be quick. A skipError leaves the injection out. Nil: the fault is one of nodes.
	plan func(effect, *state, situation) (*injection, error)

	// These fields belong to faults of nodes:
	claims part
	lost   bool                                                                      // the cluster cannot count on the node, although it is neither ended nor paused
	agent  bool                                                                      // it is done to the agent of the node
	inject func(context.Context, effect, *state, cluster.Node) (fault.Effect, error) // nil: the argument is a link
}

// effect is one fault without its schedule. It is comparable with ==.
type effect struct {
	word   string       // of its kind
	target target       // empty: it names none
	arg    fmt.Stringer // what its kind reads besides; nil: nothing
}

// healing is the reason why an effect must be undone, or none.
type healing int

const (
	healAlways  healing = iota // after its time, or at the end of the load phase
	healAtOnce                 // after its time if it says one, else at once
	healIfAsked                // after its time if it says one, else never
	healNever                  // there is nothing to undo
)

// heals returns the healing of the kind, unless the argument has one of its own.
func (e effect) heals() healing {
	if own, ok := e.arg.(interface{ heals() healing }); ok {
		return own.heals()
	}
	return e.kind().heals
}

func (e effect) kind() *kind {
	all := kinds()
	return &all[slices.IndexFunc(all, func(k kind) bool { return k.word == e.word })]
}

// String returns the text that Parse reads as this effect.
func (e effect) String() string {
	if text := e.kind().text; text != nil {
		return text(e)
	}
	if e.arg == nil {
		return phrase(e.word, string(e.target))
	}
	return phrase(e.word, string(e.target), e.arg.String())
}

// phrase joins the words that are not empty.
func phrase(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// needsLeader reports whether the nodes cannot be chosen without knowing who leads.
func (e effect) needsLeader() bool {
	led := e.kind().led
	return e.target.needsLeader() || led != nil && led(e)
}

// possible returns an error if this cluster can never suffer the effect.
func (e effect) possible(s *state) error {
	nodes := s.cluster.Nodes()
	if f, ok := s.cluster.(Foreign); ok {
		if err := f.Can(e.String()); err != nil {
			return err
		}
	}
	if err := e.kind().able(e, s, nodes); err != nil {
		return err
	}
	if err := e.fits(names(nodes), s.grows); err != nil && !s.uncounted {
		return err
	}
	if !s.leads && e.target.needsLeader() {
		return errEquals
	}
	return nil
}

// fits returns an error if there are too few nodes, or none has the name of the target. grows
// reports that the script adds nodes.
func (e effect) fits(nodes []string, grows bool) error {
	if few := e.kind().few; few != nil {
		if least, why := few(e); len(nodes) < least && !grows {
			return errors.New(why)
		}
	}
	return e.target.fits(nodes, grows)
}

// atLeast is the fewest nodes of a kind of fault.
func atLeast(nodes int, why string) func(effect) (int, string) {
	return func(effect) (int, string) { return nodes, why }
}

// List returns one row a fault: how it is written, and what it does.
func List() [][2]string {
	list := [][2]string{}
	for _, k := range kinds() {
		list = append(append(list, [2]string{k.usage, k.about}), k.further...)
	}
	return append(list,
		[2]string{"mix SCHEDULE: FAULT | FAULT …", "each time one of the faults by chance, as in " + listExample(mix)},
		[2]string{"cycle every T [for T]: FAULT | FAULT …", "each time the next of the faults, as in " + listExample(cycle)},
		[2]string{"TARGET", "a node such as n0, or " + strings.Join(targetWords(), ", ") + "; random, follower and minority choose nodes that have no fault yet"},
		[2]string{"SCHEDULE", fmt.Sprintf("[at T | every T] [for T] [jitter T], from the start of the run; without at and every: at %s; without for: healed half way to the next, or at the end of the drive; jitter: each time is put off by less than that, by chance", short(defaultAt))},
	)
}
