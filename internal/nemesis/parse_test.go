package nemesis

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestParsePrintsCanonicalForm checks that texts are read, and printed in their one canonical form.
func TestParsePrintsCanonicalForm(t *testing.T) {
	for _, c := range []struct{ text, canonical string }{
		{"kill leader every 20s for 10s", ""},
		{"kill primary every 20s", ""},
		{"  kill\t1   every 120s for 10000ms ", "kill n1 every 2m for 10s"},
		{"kill all at 1h30m", ""},
		{"stop n02", "stop n2"},
		{"pause follower at 1m30s for 500ms jitter 2s", ""},
		{"pause standby jitter 2s for 500ms at 90s", "pause standby at 1m30s for 500ms jitter 2s"},
		{"replace random every 2m", ""},
		{"kill majority", ""},
		{"kill minority", ""},
		{"pause followers", ""},
		{"pause standbys", ""},
		{"partition leader", ""},
		{"partition n0 every 20s", ""},
		{"partition majority", ""},
		{"partition minority", ""},
		{"partition all", ""},
		{"partition halves", ""},
		{"partition halves one-way", ""},
		{"partition ring at 10s", ""},
		{"partition bridge", ""},
		{"partition leader one-way", ""},
		{"partition leader one-way out for 1s", "partition leader one-way for 1s"},
		{"partition leader one-way in", ""},
		{"partition client leader", "partition client from leader"},
		{"partition client from primary one-way in", ""},
		{"slow follower by 50ms", ""},
		{"slow follower by 50ms varying 10ms at 3s", ""},
		{"lossy leader by 5%", ""},
		{"lossy leader by 0.50%", "lossy leader by 0.5%"},
		{"limit leader to 1MB/s", ""},
		{"limit leader to 1.5MB/s", "limit leader to 1500kB/s"},
		{"limit leader to 1000000B/s", "limit leader to 1MB/s"},
		{"clock random by 10s", ""},
		{"clock random by -10s at 1s", ""},
		{"clock random at rate 1.05", ""},
		{"clock random at rate 0.5 at 10s", ""},
		{"disk-full random", ""},
		{"slow-disk random", "slow-disk random by 100ms"},
		{"slow-disk random by 20ms", ""},
		{"stress leader", ""},
		{"stress all by 16 every 10s for 2s", ""},
		{"stress n0 by 004", "stress n0 by 4"},
		{"lose-unsynced all", ""},
		{"add node at 10s", ""},
		{"remove random at 10s for 10s", ""},
		{"move leader every 10s", ""},
		{"move leader to n1", ""},
		{"rolling-restart at 3s", ""},
		{"exec 'systemctl stop x'", ""},
		{"exec 'it''s | a: test' 'heal' at 1s for 1s", ""},
		{"mix every 20s for 5s: kill random | pause leader | partition halves", ""},
		{"mix:move leader|kill n1", "mix: move leader | kill n1"},
		{"mix at 3s: exec ':|'", ""},
		{"cycle every 1m jitter 1s: rolling-restart | partition client from n0 one-way", ""},
	} {
		f, err := Parse(c.text)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.text, err)
			continue
		}
		want := c.canonical
		if want == "" {
			want = c.text
		}
		if f.String() != want {
			t.Errorf("Parse(%q) prints %q, want %q", c.text, f, want)
		}
	}
}

// TestParseRejectsInvalidFaults checks that invalid texts are rejected with an error that helps.
func TestParseRejectsInvalidFaults(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "it is empty"},
		{"kil leader", `"kil" is no fault; the nearest is kill`},
		{"particion leader", "the nearest is partition"},
		{"crash leader", "the nearest is kill"},
		{"meteorite leader", `"meteorite" is no fault; take one of mix, cycle, kill, `},
		{"kill master", "the nearest is primary"},
		{"kill everybody", `"everybody" is no target; take one of random, leader, `},
		{"kill leader sometimes", "take one of at, every, for, jitter"},
		{"kill", "it names no target"},
		{"kill leadr", `"leadr" is no target; the nearest is leader`},
		{"kill n-1", "is no target"},
		{"kill 70000", "is no target"},
		{"kill 'leader'", "quoted"},
		{"partition havles", "the nearest is halves"},
		{"kill leader evry 20s", `"evry" is no word of a schedule; the nearest is every`},
		{"kill leader at", `after "at" a time is missing`},
		{"kill leader at 20", "is no time"},
		{"kill leader at 0s", "must be more than zero"},
		{"kill leader at -3s", "must be more than zero"},
		{"kill leader for 0s", "must be more than zero"},
		{"kill leader every 1ms", "the least is 100ms"},
		{"kill leader at 2000h", "the most is 1000h"},
		{"kill leader at 1s at 2s", "stands twice"},
		{"kill leader at 1s every 2s", "both at and every"},
		{"kill leader every 5s for 5s", "make every the longer one"},
		{"kill leader every 5s for 6s", "make every the longer one"},
		{"kill leader every 5s for 4s jitter 1s", "must be shorter than every"},
		{"kill leader every 5s jitter 5s", "must be shorter than every"},
		{"move leader for 5s", "nothing to heal"},
		{"rolling-restart for 5s", "nothing to heal"},
		{"exec 'a' for 5s", "nothing to heal"},
		{"mix for 5s: move leader | rolling-restart", "nothing to heal"},
		{"exec", "takes a command in single quotes"},
		{"exec ' '", "is empty"},
		{"exec 'a", "does not end"},
		{"exec 'a' 'b' 'c'", "quoted"},
		{"slow leader", `"by" is missing`},
		{"slow leader at 1s", `"at" is in the place of "by"`},
		{"slow leader by 50", "is no time"},
		{"slow leader by 40s", "at most 30s"},
		{"slow leader by 10ms varying 9ms", "may vary by half"},
		{"lossy leader by 5", "is no share"},
		{"lossy leader by 100%", "out of bounds"},
		{"lossy leader by NaN%", "is no share"},
		{"limit leader to 1Mbit", "is no bandwidth"},
		{"limit leader to 1B/s", "out of bounds"},
		{"limit leader to 9GB/s", "out of bounds"},
		{"clock random", `"at" is missing`},
		{"clock random at 5s", `in the place of "rate"`},
		{"clock random by 1ms", "too little to be seen"},
		{"clock random at rate 1", "out of bounds"},
		{"clock random at rate -2", "is no rate"},
		{"stress", "names no target"},
		{"stress random by", `after "by" the number of processes is missing`},
		{"stress random by x", `"x" is no number of processes: write it as 4`},
		{"stress random by 1.5", "is no number of processes"},
		{"stress random by 2s", "is no number of processes"},
		{"stress random by 0", "0 processes are out of bounds: the number must be between 1 and 256"},
		{"stress random by -1", "out of bounds"},
		{"stress random by 100000", "100000 processes are out of bounds"},
		{"stress random by 99999999999999999999", "out of bounds"},
		{"stress random 4", `"4" is no word of a schedule`},
		{"partition ring one-way", "cannot be one-way"},
		{"partition all one-way", "cannot be one-way"},
		{"partition halves one-way in", "left to chance"},
		{"remove all", "one at a time"},
		{"add", `"node" is missing`},
		{"chaos", "a file in single quotes"},
		{"chaos io.yaml", "a file in single quotes"},
		{"chaos ' '", "a file in single quotes"},
		{"move leader to leader", "cannot be moved to leader"},
		{"mix kill n1", "a colon must stand"},
		{"mix: kill n1 at 5s", "belongs before the colon"},
		{"mix: kill n1 |", "a fault is missing"},
		{"mix: kill n1 pause n2", "no word that may follow here"},
		{"mix: mix: kill n1", "is no fault"},
		{"cycle: kill n1", "cycle needs every"},
		{"kill n1 | kill n2", "is no word of a schedule"},
		{"kill \xff", "not text in UTF-8"},
	} {
		f, err := Parse(c.text)
		if err == nil {
			t.Errorf("Parse(%q) is %q, want an error that says %q", c.text, f, c.says)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("Parse(%q): %v, want %q in it", c.text, err, c.says)
		}
	}
}

// roundTrip holds that a fault prints as a text that reads as the same fault.
func roundTrip(t *testing.T, f Fault) {
	t.Helper()
	again, err := Parse(f.String())
	if err != nil {
		t.Fatalf("what was printed does not parse: %v", err)
	}
	if !reflect.DeepEqual(again, f) || again.String() != f.String() {
		t.Fatalf("%q reads as %q: %#v and %#v", f, again, f, again)
	}
}

// TestParseRoundTrip checks that random faults are equal after they are printed and read.
func TestParseRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(20_000) {
		f := anyFault(rand.New(rand.NewPCG(seed, 1)))
		if f.check() != nil {
			continue
		}
		roundTrip(t, f)
		for _, e := range f.effects {
			seen[strings.Fields(e.String())[0]] = true
		}
	}
	for _, f := range kinds() {
		if !seen[f.word] {
			t.Errorf("no %s was made", f.word)
		}
	}
}

func anyFault(rng *rand.Rand) Fault {
	maybe := func(most time.Duration) time.Duration {
		if rng.IntN(2) == 0 {
			return 0
		}
		return time.Duration(1+rng.Int64N(int64(most/time.Millisecond))) * time.Millisecond
	}
	f := Fault{when: timing{lasts: maybe(time.Hour), jitter: maybe(time.Minute)}}
	switch rng.IntN(3) {
	case 0:
		f.when.at = maybe(maxTime)
	case 1:
		f.when.every = leastEvery + maybe(maxTime-leastEvery)
	}
	f.order = []string{"", "", mix, cycle}[rng.IntN(4)]
	f.effects = []effect{anyEffect(rng)}
	for f.order != "" && rng.IntN(3) > 0 {
		f.effects = append(f.effects, anyEffect(rng))
	}
	return f
}

func anyEffect(rng *rand.Rand) effect {
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	to := target(one(targetWords()...))
	if rng.IntN(3) == 0 {
		to = target(nodeName(rng.IntN(9)))
	}
	span := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	text := func() string {
		runes := make([]rune, 1+rng.IntN(8))
		for i := range runes {
			runes[i] = []rune("a'|: \né")[rng.IntN(7)]
		}
		return string(runes) + "."
	}
	cut := func(shape string, to target, ways ...string) effect {
		return effect{"partition", to, cutting{shape, one(ways...)}}
	}
	switch rng.IntN(12) {
	case 0:
		return []effect{{word: one("kill", "stop", "pause", "replace", "kill-agent", "pause-agent"), target: to}, {word: one("kill-store", "pause-store")}}[rng.IntN(2)]
	case 1:
		return []effect{cut(ring, "", bothWays), cut(bridge, "", bothWays), cut(halves, "", bothWays, outbound),
			cut(client, to, bothWays, outbound, inbound), cut("", "n3", bothWays, outbound, inbound)}[rng.IntN(5)]
	case 2:
		by := span(time.Millisecond, 10*time.Second)
		return effect{"slow", to, link{Delay: by, Jitter: by / time.Duration(2+rng.IntN(9))}}
	case 3:
		return effect{"lossy", to, link{Loss: leastLoss + rng.Float64()*90}}
	case 4:
		return effect{"limit", to, link{Bandwidth: leastRate + rng.Int64N(mostRate-leastRate)}}
	case 5:
		return effect{"clock", to, byTime(span(leastJump, maxTime) * time.Duration(1-2*rng.IntN(2)))}
	case 6:
		return effect{"clock", to, drift(1.5 + rng.Float64())}
	case 7:
		return effect{"slow-disk", to, byTime(span(leastPerCall, time.Minute))}
	case 8:
		return effect{"stress", to, processes(rng.IntN(mostProcesses + 1))}
	case 9:
		return effect{word: one("disk-full", "lose-unsynced"), target: to}
	case 10:
		return []effect{{word: "add"}, {word: "rolling-restart"}, {word: "remove", target: random}, {word: "move"}, {word: "move", target: "n2"}}[rng.IntN(5)]
	default:
		return []effect{{word: "exec", arg: command{inject: text()}}, {word: "exec", arg: command{text(), text()}}, {word: "chaos", arg: chaosFile(text())}}[rng.IntN(3)]
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"kill leader every 20s for 10s", "partition client from n1 one-way in", "exec 'it''s' ':'",
		"mix every 20s for 5s jitter 1ms: kill random | slow n1 by 1ms varying 1us | limit all to 1.5MB/s",
		"cycle every 1h: clock random at rate 1.05 | clock n2 by -1h | lossy all by 0.1%", "slow-disk 0 by 7ms at 1ns", "stress all by 256",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := Parse(text)
		if err == nil {
			roundTrip(t, fault)
		}
	})
}

// TestEachUsageParses checks that each usage in the list of faults parses when its words are filled in.
func TestEachUsageParses(t *testing.T) {
	fill := strings.NewReplacer(" TARGET", " n0", "TARGET", "n0", "varying T", "varying 1ms", "every T", "every 5s", "by T | at rate F", "by 1s", " T", " 1s", "P%", "5%", "N[k|M|G]B/s", "5kB/s", "by N", "by 4",
		"'COMMAND'", "'true'", "'HEAL'", "'true'", "SCHEDULE", "at 1s", "FAULT | FAULT …", "kill n0", "[", "", "]", "", " | ring | bridge", "")
	for _, row := range List() {
		if row[0] == "" || row[1] == "" {
			t.Errorf("the row %q is not whole", row)
		}
		if text := fill.Replace(row[0]); row[0] != "TARGET" && row[0] != "SCHEDULE" {
			if _, err := Parse(text); err != nil {
				t.Errorf("the usage %q, filled in: %v", row[0], err)
			}
		}
	}
	for _, f := range kinds() {
		if !strings.HasPrefix(f.usage, f.word) {
			t.Errorf("the usage %q does not begin with %s", f.usage, f.word)
		}
	}
}

func TestOnlyDiskFaultsNeedFileSystemLayer(t *testing.T) {
	for text, want := range map[string]bool{
		"kill n0": false, "disk-full n0": true, "slow-disk n0": true, "lose-unsynced n0": true,
		"mix: kill n0 | lose-unsynced n0": true, "mix: kill n0 | pause n0": false,
	} {
		if got := (Script{must(t, text)}).NeedsLayer(); got != want {
			t.Errorf("%q needs a layer: %v, want %v", text, got, want)
		}
	}
}

func must(t *testing.T, text string) Fault {
	t.Helper()
	f, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func script(t *testing.T, lines ...string) (s Script) {
	t.Helper()
	for _, text := range lines {
		s = append(s, must(t, text))
	}
	return s
}
