package resource

import (
	"os"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// Peak looks at the resident memory of this process until the function that it returns is
// called, which returns the highest of all that was seen, in bytes; 0 is not known.
func Peak(every time.Duration) (end func() int64) {
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return func() int64 { return 0 }
	}
	var peak int64
	look := func() {
		if resident, _, err := residentMemory(self); err == nil {
			peak = max(peak, resident)
		}
	}
	look()
	ended := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				look()
			}
		}
	})
	return func() int64 {
		close(ended)
		looking.Wait()
		look()
		return peak
	}
}

// Free returns how many bytes of memory this process can still have: what the machine has
// available, or what the limit of the container leaves of it; 0 is not known.
func Free() int64 {
	memory, err := mem.VirtualMemory()
	if err != nil {
		return 0
	}
	free := int64(memory.Available)
	if _, limit := limits("/proc/self/cgroup", "/sys/fs/cgroup"); limit > 0 {
		free = min(free, limit)
	}
	return free
}
