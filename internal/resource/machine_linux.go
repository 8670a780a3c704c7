package resource

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// blockDevice is what the kernel says of the disk that a file is on; nothing where it is on
// none, or on several.
func blockDevice(path string) (model string, rotating *bool) {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return "", nil
	}
	dev := uint64(stat.Dev)
	device, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev)))
	if err != nil {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		device = filepath.Dir(device)
	}
	if model = line(filepath.Join(device, "device", "model")); model == "" {
		return "", nil // a virtual disk, of which the kernel says that it rotates
	}
	switch line(filepath.Join(device, "queue", "rotational")) {
	case "0":
		rotating = new(false)
	case "1":
		rotating = new(true)
	}
	return model, rotating
}
