package disk

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

type slowness struct {
	perCall time.Duration
	over    chan struct{} // closed when it ends
}

// setSlow lets every call take so much longer, from now on; zero ends that, also
// for the calls that are waiting.
func (v *volume) setSlow(perCall time.Duration) {
	var s *slowness
	if perCall > 0 {
		s = &slowness{perCall, make(chan struct{})}
	}
	if before := v.slow.Swap(s); before != nil {
		close(before.over)
	}
}

// killedPoll is how often it is checked whether a caller that was signalled has
// been killed.
const killedPoll = 10 * time.Millisecond

// wait is what a call to a slow disk does first. It waits on for a caller that
// was sent a signal, as a disk does, but not for one that was killed, which cannot
// end before its call does.
func (v *volume) wait(cancel <-chan struct{}, caller *fuse.InHeader) {
	s := v.slow.Load()
	if s == nil {
		return
	}
	timer := time.NewTimer(s.perCall)
	defer timer.Stop()
	var poll <-chan time.Time
	for {
		select {
		case <-timer.C:
			return
		case <-s.over:
			return
		case <-cancel:
			cancel = nil // the kernel does not report a second signal
			ticker := time.NewTicker(killedPoll)
			defer ticker.Stop()
			poll = ticker.C
		case <-poll:
			if killed(caller.Pid) {
				return
			}
		}
	}
}

// pending finds the signals that are pending for a thread and for its process; see
// proc(5), SigPnd.
var pending = regexp.MustCompile(`(?m)^(?:Sig|Shd)Pnd:\s*([0-9a-f]+)$`)

// killed reports whether SIGKILL is pending for a thread.
func killed(thread uint32) bool {
	text, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/status")
	if err != nil {
		return true // it is gone
	}
	return slices.ContainsFunc(pending.FindAllSubmatch(text, -1), func(found [][]byte) bool {
		signals, err := strconv.ParseUint(string(found[1]), 16, 64)
		return err == nil && signals&(1<<(unix.SIGKILL-1)) != 0
	})
}
