package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
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
type effect struct {
	word   string // of its kind
	target target // empty: it names none
	// What its kind reads of these, and zero otherwise.
	shape, way   string        // of a partition
	by           time.Duration // how much longer a call or a packet takes, or how far a clock jumps
	varies       time.Duration // the delay of a packet
	rate         float64       // of a clock
	percent      float64       // of packets that get lost
	bytes        int64         // a second, of a link
	processes    int           // that compute; 0: one for each processor
	inject, heal string        // the user's commands
}

// healing says whether an effect is to be undone.
type healing int

const (
	healAlways  healing = iota // after its time, or at the end of the load phase
	healAtOnce                 // after its time if it says one, else at once
	healIfAsked                // after its time if it says one, else never
	healNever                  // there is nothing to undo
)

// kind is a kind of fault: how it is written, and what it does.
type kind struct {
	word    string // the first of the text
	usage   string
	about   string
	further [][2]string // other usages, and what they do

	read  func(*effect, *reader) error // what follows the word, or the target of a fault of nodes; nil: nothing does
	able  able
	heals healing
	// plan chooses the nodes; it is called when the injection is due, with the
	// state locked, and must be quick. An error that is a skipError leaves the
	// injection out. Nil: the fault is one of nodes.
	plan func(effect, *state, situation) (*injection, error)

	// Of faults of nodes.
	claims part
	lost   bool // the cluster cannot count on a node that is neither ended nor paused
	inject func(context.Context, effect, *state, cluster.Node) (cluster.Effect, error)
}

// The words of the faults.
const (
	kill         = "kill"
	stop         = "stop"
	pause        = "pause"
	replace      = "replace"
	partition    = "partition"
	slow         = "slow"
	lossy        = "lossy"
	limit        = "limit"
	clock        = "clock"
	stress       = "stress"
	diskFull     = "disk-full"
	slowDisk     = "slow-disk"
	loseUnsynced = "lose-unsynced"
	add          = "add"
	remove       = "remove"
	move         = "move"
	rolling      = "rolling-restart"
	execute      = "exec"
	chaos        = "chaos"
	killAgent    = "kill-agent"
	pauseAgent   = "pause-agent"
	killStore    = "kill-store"
	pauseStore   = "pause-store"
)

func kinds() []kind {
	kills, stops, restarts := has[Killer]("killed"), has[Terminator]("shut down in good order"), has[Restarter]("started again")
	resizes := is[cluster.Resizer]("this kind of cluster cannot grow or shrink while it works")
	moves := both(led, is[cluster.Mover]("this kind of cluster cannot hand its lead over in good order; kill leader makes it find a new one"))
	steers := fit("nothing can steer the clocks of this kind of node", "the clock of %s cannot be steered: %w", Clock.Steered)
	drifts := func(e effect, s *state, nodes []cluster.Node) error {
		if e.rate == 0 {
			return nil
		}
		return fit[Drifter]("the clocks of this kind of node can be put forward or back, by `clock TARGET by T`, and not made to run at another rate", "%s: %w", func(Drifter) error { return nil })(e, s, nodes)
	}
	computes := fit("nothing can take part in the share of the processors that this kind of node has", "the processors of %s cannot be taken up: %w", Processor.Stressable)
	disk := both(fit("this kind of node cannot have faults of its disk: take a cluster that is started on this machine with layer=on, as in KIND:1?layer=on", "the disk of %s cannot have faults: %w", Disk.DiskFaults), both(kills, restarts))
	loses := both(has[VolatileDisk]("made to lose what it did not sync"), disk)
	anything := func(effect, *state, []cluster.Node) error { return nil }
	return append([]kind{
		{word: kill, usage: "kill TARGET", about: "SIGKILL to all processes of the node at once; healed by a restart on its data",
			able: both(kills, restarts), claims: partLife, inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (cluster.Effect, error) {
				return down(ctx, n, n.(Killer).Kill, n.(Restarter).Restart)
			}},
		{word: stop, usage: "stop TARGET", about: "shut the node down in good order; healed by a restart",
			able: both(stops, restarts), claims: partLife, inject: injectStop},
		{word: pause, usage: "pause TARGET", about: "SIGSTOP: connections stay open and nothing answers; healed by SIGCONT",
			able: has[Pauser]("paused"), claims: partPause, inject: injectPause},
		{word: replace, usage: "replace TARGET", about: "kill the node and take its data away; after `for`, or at once, it joins again empty",
			able: both(kills, has[Replacer]("replaced")), claims: partLife, inject: injectReplace, heals: healAtOnce},
		{word: partition, usage: "partition TARGET [one-way [in]]", about: "no packet between the target and the other nodes, clients reach all; one-way: what the target sends is lost, one-way in: what is sent to it; majority leaves the leader on the smaller side, minority on the larger; all: each node alone",
			further: [][2]string{
				{"partition halves [one-way] | ring | bridge", "halves: two groups by chance; ring: each node reaches only its neighbours, a majority; bridge: two groups that only one node reaches both of"},
				{"partition client from TARGET [one-way [in]]", "no packet between this program and the target; the nodes reach each other"},
			},
			read: readPartition, able: hasLinks, plan: planPartition},
		{word: slow, usage: "slow TARGET by T [varying T]", about: "delay every packet to and from the node, so that a round trip takes twice as much longer; in Kubernetes only what the pod sends, so that it takes once as much longer",
			read: readDelay, able: hasLinks, claims: partLink},
		{word: lossy, usage: "lossy TARGET by P%", about: "lose so many of the packets of the node, by chance",
			read: readLoss, able: hasLinks, claims: partLink},
		{word: limit, usage: "limit TARGET to N[k|M|G]B/s", about: "let no more bytes a second through to and from the node; in Kubernetes only of what the pod sends",
			read: readRate, able: hasLinks, claims: partLink},
		{word: clock, usage: "clock TARGET by T | at rate F", about: "the node's processes see a clock that jumped by T, which may be negative, or that runs F times as fast",
			read: readClock, able: both(steers, drifts), claims: partClock, inject: injectClock},
		{word: stress, usage: "stress TARGET [by N]", about: "N processes that do nothing but compute, one for each processor if it does not say, take part in the node's own share of the processors",
			read: readProcesses, able: computes, claims: partProcessor, inject: func(ctx context.Context, e effect, _ *state, n cluster.Node) (cluster.Effect, error) {
				return n.(Processor).Stress(ctx, e.processes)
			}},
		{word: diskFull, usage: "disk-full TARGET", about: "writes to the node's data fail: no space left on device",
			able: disk, claims: partDisk, lost: true, inject: injectFull},
		{word: slowDisk, usage: "slow-disk TARGET [by T]", about: "each call to the node's data folder takes T longer, 100ms if it does not say",
			read: readPerCall, able: disk, claims: partDisk, inject: func(ctx context.Context, e effect, _ *state, n cluster.Node) (cluster.Effect, error) {
				return n.(Disk).SlowDisk(ctx, e.by)
			}},
		{word: loseUnsynced, usage: "lose-unsynced TARGET", about: "cut the power: kill the node, and what it did not fsync is gone; healed by a restart",
			able: loses, claims: partLife, inject: injectLoss},
		{word: add, usage: "add node", about: "a new empty node joins; with `for` it leaves again",
			read: readAdd, able: resizes, plan: planAdd, heals: healIfAsked},
		{word: remove, usage: "remove TARGET", about: "the node leaves the cluster for good; with `for` a new one joins afterwards",
			read: readRemove, able: resizes, plan: planRemove, heals: healIfAsked},
		{word: move, usage: "move leader [to TARGET]", about: "hand the lead over in good order",
			read: readMove, able: moves, plan: planMove, heals: healNever},
		{word: rolling, usage: "rolling-restart", about: "shut down and restart one node after the other, the cluster whole in between",
			able: both(stops, restarts), plan: planRestart, heals: healNever},
		{word: execute, usage: "exec 'COMMAND' ['HEAL']", about: "run a shell command of your own, and another to heal; exit code 0 says that it worked",
			read: readCommand, able: anything, plan: planCommand},
		{word: chaos, usage: "chaos 'FILE'", about: "apply the Chaos Mesh objects in a YAML file, such as an IOChaos or a Workflow, in the namespace of a cluster in Kubernetes; healed by their deletion",
			read: readFile, able: is[ChaosTaker]("only a cluster in Kubernetes, k8s/KIND:N, takes objects of Chaos Mesh"), plan: planChaos},
	}, failoverKinds()...)
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

func (e effect) kind() kind {
	all := kinds()
	return all[slices.IndexFunc(all, func(k kind) bool { return k.word == e.word })]
}

// String is the text that Parse reads as this effect.
func (e effect) String() string {
	words := []string{e.word}
	say := func(when bool, more ...string) {
		if when {
			words = append(words, more...)
		}
	}
	say(e.word == add, "node")
	say(e.word == move, "leader")
	say(e.word == move && e.target != "", "to")
	say(e.shape != "", e.shape)
	say(e.shape == client, "from")
	say(e.target != "", string(e.target))
	say(e.way != bothWays, e.way)
	say(e.by != 0, "by", short(e.by))
	say(e.varies != 0, "varying", short(e.varies))
	say(e.rate != 0, "at rate", decimal(e.rate))
	say(e.percent != 0, "by", decimal(e.percent)+"%")
	say(e.bytes != 0, "to", rateText(e.bytes))
	say(e.processes != 0, "by", strconv.Itoa(e.processes))
	say(e.inject != "", quote(e.inject))
	say(e.heal != "", quote(e.heal))
	return strings.Join(words, " ")
}

// needsLeader reports whether the nodes cannot be chosen without knowing who leads.
func (e effect) needsLeader() bool {
	grouped := e.word == partition && e.shape == "" && (e.target == majority || e.target == minority)
	return e.word == move || grouped || e.target.needsLeader()
}

func (e effect) heals() healing {
	if e.word == execute && e.heal == "" {
		return healNever
	}
	return e.kind().heals
}

// possible says why this cluster can never suffer it.
func (e effect) possible(s *state) error {
	nodes := s.cluster.Nodes()
	if err := e.kind().able(e, s, nodes); err != nil {
		return err
	}
	if e.word == chaos {
		return s.cluster.(ChaosTaker).ChaosFile(e.inject)
	}
	if err := e.fits(names(nodes), s.grows); err != nil && !s.uncounted {
		return err
	}
	if !s.leads && e.target.needsLeader() {
		return errEquals
	}
	return nil
}

// fits says why there are too few of these nodes for it, or none of its target's name. grows
// says that the script adds nodes.
func (e effect) fits(nodes []string, grows bool) error {
	fewer := func(least int) bool { return len(nodes) < least && !grows }
	switch {
	case e.word == replace && fewer(2):
		return errors.New("a cluster of one node has nobody to take the data from: kill it instead, or start more nodes")
	case e.word == remove && fewer(2):
		return errors.New("the only node of a cluster cannot be removed")
	case e.word == partition && e.shape != client && fewer(2):
		return errors.New("a cluster of one node has no link to cut; partition client from it instead")
	case e.shape == bridge && fewer(3):
		return errors.New("a bridge needs three nodes at least")
	case e.shape == ring && fewer(4):
		return errors.New("a ring needs four nodes at least: of three each is the neighbour of each")
	case e.word == move && fewer(2):
		return errors.New("a cluster of one node has nobody to hand the lead to: start more nodes")
	}
	return e.target.fits(nodes, grows)
}

// Fits refuses what no cluster of so many nodes, n0 on, could suffer, whatever its kind.
func (s Script) Fits(nodes int) error {
	var names []string
	for number := range nodes {
		names = append(names, nodeName(number))
	}
	return s.each(func(e effect) error { return e.fits(names, s.has(add)) })
}

// possible says which fault this cluster can never suffer, and why.
func (s Script) possible(on *state) error {
	return s.each(func(e effect) error { return e.possible(on) })
}

// each says which fault is the first that a cluster refuses, and why.
func (s Script) each(refusal func(effect) error) error {
	for _, f := range s {
		for _, e := range f.effects {
			if err := refusal(e); err != nil {
				return fmt.Errorf("the fault %q cannot be done to this cluster: %w", e, err)
			}
		}
	}
	return nil
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

// NeedsClock reports whether a fault of the script needs clocks that can be moved,
// which a cluster must be started with.
func (s Script) NeedsClock() bool { return s.has(clock) }

// NeedsLayer reports whether a fault of the script needs a file system of ours
// under the data of the nodes, which a cluster must be started with.
func (s Script) NeedsLayer() bool { return s.has(diskFull, slowDisk, loseUnsynced) }

func (s Script) has(words ...string) bool {
	return slices.ContainsFunc(s, func(f Fault) bool {
		return slices.ContainsFunc(f.effects, func(e effect) bool { return slices.Contains(words, e.word) })
	})
}
