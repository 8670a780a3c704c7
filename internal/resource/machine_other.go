//go:build !linux

package resource

import (
	"strings"

	"github.com/shirou/gopsutil/v4/host"
)

func system() (name, kernel string) {
	if platform, _, version, err := host.PlatformInformation(); err == nil {
		name = strings.TrimSpace(platform + " " + version)
	}
	kernel, _ = host.KernelVersion()
	return name, kernel
}

// blockDevice returns nothing, because this system does not report it.
func blockDevice(string) (model string, rotating *bool) { return "", nil }
