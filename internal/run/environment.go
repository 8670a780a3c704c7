package run

import (
	"slices"

	"stroppy/internal/report"
	"stroppy/internal/resource"
)

// Environment is what the caller knows of where a run takes place.
type Environment struct {
	// Servers is where the database's servers run, one of report's constants; empty: it is
	// not known.
	Servers string
	// Data are the folders that hold the database's data on this machine.
	Data  []string
	Build report.Build
}

// fingerprint is what measurements depend on of the machine, and of the caller's.
func (e *Environment) fingerprint(dir string) *report.Environment {
	m := resource.ThisMachine()
	r := &report.Environment{
		Processor: m.Processor, Cores: m.Cores, Threads: m.Threads, UsableThreads: m.Usable, MemoryBytes: m.Memory, System: m.System, Kernel: m.Kernel,
		Governor: m.Governor, CPULimit: m.CPULimit, MemoryLimitBytes: m.MemoryLimit, Servers: e.Servers, Build: e.Build,
	}
	if s, known := resource.StorageOf(dir); known {
		r.RunDirectory = new(report.Storage(s))
	}
	for _, data := range e.Data {
		s, known := resource.StorageOf(data)
		same := func(other report.Storage) bool { return other.FileSystem == s.FileSystem && other.Device == s.Device }
		if known && !slices.ContainsFunc(r.ServerData, same) {
			r.ServerData = append(r.ServerData, report.Storage(s))
		}
	}
	return r
}
