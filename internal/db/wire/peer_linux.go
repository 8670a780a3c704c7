package wire

import (
	"errors"
	"net"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// PeerUser returns the name of the system's user at the other end of a Unix socket.
func PeerUser(conn net.Conn) (string, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return "", errors.New("it is no Unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return "", err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, os.NewSyscallError("getsockopt", failed)); err != nil {
		return "", err
	}
	owner, err := user.LookupId(strconv.Itoa(int(peer.Uid)))
	if err != nil {
		return "", err
	}
	return owner.Username, nil
}
