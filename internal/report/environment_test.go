package report

import (
	"strings"
	"testing"
)

func TestEnvironmentInOneLine(t *testing.T) {
	whole := &Environment{
		Processor: "EPYC 9", Cores: 4, Threads: 8, UsableThreads: 2, MemoryBytes: 16e9, System: "debian 12.11", Kernel: "6.1.0", Governor: "powersave",
		CPULimit: 1.5, MemoryLimitBytes: 2e9, RunDirectory: &Storage{FileSystem: "ext4", Device: "/dev/nvme0n1p2", Model: "Fast 1T", Rotating: new(false)},
		ServerData: []Storage{{FileSystem: "tmpfs"}}, Servers: OnThisMachine,
		Build: Build{Version: "v1.2.3", Commit: "0123456789abcdef", Dirty: new(true), Go: "go1.26"},
	}
	want := "EPYC 9 · 4 cores, 2 of 8 threads usable · 16 GB memory · debian 12.11, kernel 6.1.0 · ext4 on /dev/nvme0n1p2 (Fast 1T, not rotating) · limited to 1.5 processors and 2 GB memory"
	if got := whole.Text("x"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rows := whole.Table("").Rows
	var all []string
	for _, r := range rows {
		all = append(all, strings.Join(r.Cells, "="))
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"governor=powersave", "servers' data=tmpfs", "servers=on the client machine", "stroppy=v1.2.3 · commit 0123456789ab, with uncommitted changes · go1.26"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %s:\n%s", want, text)
		}
	}

	// Unknown values are left out, and never a zero.
	little := &Environment{Cores: 2, Threads: 2, UsableThreads: 2, MemoryLimitBytes: 8e9, MemoryBytes: 4e9}
	if got := little.Text("x"); got != "2 cores · 4 GB memory" {
		t.Errorf("got %q", got)
	}
	for _, r := range (&Environment{}).Table("").Rows {
		t.Errorf("of nothing there is %v", r.Cells)
	}
	if got := (*Environment)(nil).Text("linux"); got != "linux" {
		t.Errorf("got %q", got)
	}
}
