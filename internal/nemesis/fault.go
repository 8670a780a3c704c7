package nemesis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is one line of a script: what is done to which nodes, and when. Parse
// makes it.
type Fault struct {
	order   string   // mix, cycle, or empty for a single effect
	effects []effect // those that order chooses from
	when    schedule
}

// mix takes one of its effects by chance each time, cycle the next one.
const (
	mix   = "mix"
	cycle = "cycle"
)

// Script is all that one run does to its database. Its lines go on side by side.
type Script []Fault

// effect is what a fault does, without its time.
type effect interface {
	// String is the text that Parse reads as this effect.
	String() string
	// possible says why this cluster can never do it.
	possible(*state) error
	// needsLeader tells whether its nodes cannot be chosen without knowing who
	// leads.
	needsLeader() bool
	// plan chooses the nodes; it is called when the injection is due, with the
	// state locked, and must be quick. An error that is a skipError leaves the
	// injection out.
	plan(*state, situation) (*injection, error)
	// heals says whether something is to be undone.
	heals() healing
}

// healing says whether an effect is to be undone.
type healing int

const (
	healAlways  healing = iota // after its time, or at the end of the drive
	healAtOnce                 // after its time if it says one, else at once
	healIfAsked                // after its time if it says one, else never
	healNever                  // there is nothing to undo
)

// form is how an effect is written.
type form struct {
	word  string // the first of the text
	usage string
	about string
	parse func(*reader) (effect, error)
}

func forms() []form {
	return []form{
		{kill, "kill TARGET", "SIGKILL to all processes of the node at once; healed by a restart on its data", parseNodeFault(kill)},
		{stop, "stop TARGET", "shut the node down in good order; healed by a restart", parseNodeFault(stop)},
		{pause, "pause TARGET", "SIGSTOP: connections stay open and nothing answers; healed by SIGCONT", parseNodeFault(pause)},
		{replace, "replace TARGET", "kill the node and take its data away; after `for`, or at once, it joins again empty", parseNodeFault(replace)},
		{partition, "partition TARGET [one-way [in]]", "no packet between the target and the other nodes, clients reach all; one-way: what the target sends is lost, one-way in: what is sent to it; majority leaves the leader on the smaller side, minority on the larger; all: each node alone", parsePartition},
		{partition, "partition halves [one-way] | ring | bridge", "halves: two groups by chance; ring: each node reaches only its neighbours, a majority; bridge: two groups that only one node reaches both of", parsePartition},
		{partition, "partition client from TARGET [one-way [in]]", "no packet between this program and the target; the nodes reach each other", parsePartition},
		{slow, "slow TARGET by T [varying T]", "delay every packet to and from the node, so that a round trip takes twice as much longer", parseNodeFault(slow)},
		{lossy, "lossy TARGET by P%", "lose so many of the packets of the node, by chance", parseNodeFault(lossy)},
		{limit, "limit TARGET to N[k|M|G]B/s", "let no more bytes a second through to and from the node", parseNodeFault(limit)},
		{clock, "clock TARGET by T | at rate F", "the node's processes see a clock that jumped by T, which may be negative, or that runs F times as fast", parseNodeFault(clock)},
		{diskFull, "disk-full TARGET", "writes to the node's data fail: no space left on device", parseNodeFault(diskFull)},
		{slowDisk, "slow-disk TARGET [by T]", "each call to the node's data folder takes T longer, 100ms if it does not say", parseNodeFault(slowDisk)},
		{loseUnsynced, "lose-unsynced TARGET", "cut the power: kill the node, and what it did not fsync is gone; healed by a restart", parseNodeFault(loseUnsynced)},
		{add, "add node", "a new empty node joins; with `for` it leaves again", parseShapeFault(add)},
		{remove, "remove TARGET", "the node leaves the cluster for good; with `for` a new one joins afterwards", parseShapeFault(remove)},
		{move, "move leader [to TARGET]", "hand the lead over in good order", parseShapeFault(move)},
		{rolling, "rolling-restart", "shut down and restart one node after the other, the cluster whole in between", parseShapeFault(rolling)},
		{execute, "exec 'COMMAND' ['HEAL']", "run a shell command of your own, and another to heal; exit code 0 says that it worked", parseCommand},
	}
}

// List returns one row a fault: how it is written, and what it does.
func List() [][2]string {
	list := [][2]string{}
	for _, f := range forms() {
		list = append(list, [2]string{f.usage, f.about})
	}
	return append(list,
		[2]string{"mix SCHEDULE: FAULT | FAULT …", "each time one of the faults by chance, as in " + listExample(mix)},
		[2]string{"cycle every T [for T]: FAULT | FAULT …", "each time the next of the faults, as in " + listExample(cycle)},
		[2]string{"TARGET", "a node such as n0, or " + strings.Join(targetWords(), ", ") + "; random, follower and minority choose nodes that have no fault yet"},
		[2]string{"SCHEDULE", fmt.Sprintf("[at T | every T] [for T] [jitter T], from the start of the run; without at and every: at %s; without for: healed half way to the next, or at the end of the drive; jitter: each time is put off by less than that, by chance", short(defaultAt))},
	)
}

// String returns the text that Parse reads as this fault.
func (f Fault) String() string {
	texts := make([]string, len(f.effects))
	for i, e := range f.effects {
		texts[i] = e.String()
	}
	if f.order == "" {
		return strings.Join(texts, "") + f.when.String()
	}
	return f.order + f.when.String() + ": " + strings.Join(texts, " | ")
}

// check refuses what contradicts itself.
func (f Fault) check() error {
	if err := f.when.check(); err != nil {
		return err
	}
	if f.order == cycle && f.when.every == 0 {
		return fmt.Errorf("cycle needs every, for it takes the next of its faults each time, as in %s", listExample(cycle))
	}
	if f.when.lasts != 0 && !slices.ContainsFunc(f.effects, func(e effect) bool { return e.heals() != healNever }) {
		return errors.New("it says for, but there is nothing to heal: leave for out")
	}
	return nil
}

// NeedsClock tells whether a fault of the script needs clocks that can be moved,
// which a cluster must be started with.
func (s Script) NeedsClock() bool { return s.has(clock) }

// NeedsLayer tells whether a fault of the script needs a file system of ours
// under the data of the nodes, which a cluster must be started with.
func (s Script) NeedsLayer() bool { return s.has(diskFull, slowDisk, loseUnsynced) }

// has tells whether one of the faults of nodes is in the script.
func (s Script) has(words ...string) bool {
	return slices.ContainsFunc(s, func(f Fault) bool {
		return slices.ContainsFunc(f.effects, func(e effect) bool {
			n, ok := e.(nodeFault)
			return ok && slices.Contains(words, n.word)
		})
	})
}
