package resource

import (
	"os"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// Peak polls the resident memory of this process until the returned function is called. That function returns
// the maximum in bytes; 0: not known.
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

// Free returns the number of bytes that this process can still allocate: the machine's available memory, or
// the rest of the container's limit; 0: not known.
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
