package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"stroppy/internal/cluster/system"
)

// User is the operating system user of a product's servers. The zero value is the caller.
type User struct {
	product  string
	uid, gid uint32 // 0 for the caller, because no server here runs as root
}

// UserFor returns the user for servers that refuse root: the caller if it is not root, otherwise the first of the
// users that exists.
func UserFor(product string, names ...string) (User, error) {
	u := User{product: product}
	if os.Geteuid() != 0 {
		return u, nil
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			u.uid, u.gid = uint32(uid), uint32(gid)
			return u, nil
		}
	}
	return u, fmt.Errorf("the server refuses to run as root, and none of the users %v exists: run as another user", names)
}

// Give makes the user the owner of a file or folder.
func (u User) Give(path string) error {
	if u.uid == 0 {
		return nil
	}
	return os.Chown(path, int(u.uid), int(u.gid))
}

// Command returns a command that runs as the user in a folder.
func (u User) Command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if u.uid != 0 {
		system.RunAs(cmd.SysProcAttr, u.uid, u.gid)
	}
	return cmd
}

// Enters returns an error if the user cannot enter a folder above dir.
func (u User) Enters(dir string) error {
	if u.uid == 0 {
		return nil
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return err
		}
		// The permission of others counts, unless the folder belongs to the user.
		if owner, known := system.Owner(info); info.Mode()&0o001 == 0 && !(known && owner == int(u.uid)) {
			return fmt.Errorf("%s refuses to run as root, and its user cannot enter %s: "+
				"name another folder, or run chmod o+x %s", u.product, parent, parent)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}
