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

// setSlow makes every call take longer by perCall. Zero ends this, also for calls that are waiting.
func (v *volume) setSlow(perCall time.Duration) {
	var s *slowness
	if perCall > 0 {
		s = &slowness{perCall, make(chan struct{})}
	}
	if before := v.slow.Swap(s); before != nil {
		close(before.over)
	}
}

// killedPoll is the interval of the checks whether a caller that received a signal was killed.
const killedPoll = 10 * time.Millisecond

// wait delays a call to a slow disk. Like a disk, it continues after a signal to the caller. It ends when the caller
// was killed, because the caller cannot end before its call.
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

// pending finds the pending signals of a thread and of its process; see proc(5), SigPnd.
var pending = regexp.MustCompile(`(?m)^(?:Sig|Shd)Pnd:\s*([0-9a-f]+)$`)

// killed reports whether SIGKILL is pending for a thread.
func killed(thread uint32) bool {
	text, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/status")
	if err != nil {
		return true // the thread is gone
	}
	return slices.ContainsFunc(pending.FindAllSubmatch(text, -1), func(found [][]byte) bool {
		signals, err := strconv.ParseUint(string(found[1]), 16, 64)
		return err == nil && signals&(1<<(unix.SIGKILL-1)) != 0
	})
}
