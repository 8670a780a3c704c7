package registry

import (
	"strings"
	"sync"

	"stroppy/internal/scenario"
	"stroppy/internal/workload/appends"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/events"
	"stroppy/internal/workload/kv"
	"stroppy/internal/workload/script"
	"stroppy/internal/workload/tpcb"
)

// Workloads is the registry: every workload that this program has, the default first.
func Workloads() scenario.Workloads { return workloads() }

// workloads makes the list once, because the commands and flags ask for it often.
var workloads = sync.OnceValue(func() scenario.Workloads {
	return scenario.Workloads{
		bank.Spec(),
		tpcb.Spec(),
		events.Spec(),
		kv.Spec(),
		appends.Spec(),
		script.Spec(),
	}
})

// WorkloadOf returns the workload of a name, which may be the name in another tool.
func WorkloadOf(name string) (form string, found bool) {
	for _, w := range Workloads() {
		if w.Name == name {
			return name, true
		}
		if flags, known := w.Elsewhere[strings.ToLower(name)]; known {
			return strings.TrimSpace(w.Name + " " + flags), true
		}
	}
	return "", false
}
