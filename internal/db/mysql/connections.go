package mysql

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"

	"stroppy/internal/db"
)

// FreeConnections implements db.ConnectionLimited. It considers max_connections, without the extra connection for
// administrators, and max_user_connections (https://dev.mysql.com/doc/refman/8.4/en/too-many-connections.html,
// https://dev.mysql.com/doc/refman/8.4/en/user-resources.html). Its own connection is not counted, because it ends
// now.
//
// The number is not known if sessions use several servers, and behind a proxy, which is recognized by a different
// connection number in the handshake. A proxy before replicating servers may spread connections without changing the
// handshake, so there the connection must come from our own port.
func (d *Database) FreeConnections(ctx context.Context) (free db.FreeConnections, err error) {
	if d.address.spread && len(d.address.hosts) > 1 {
		return free, nil
	}
	err = d.control(ctx, d.op("ask how many connections it takes"), func(_ context.Context, c *link) error {
		free.Server = d.server.product.String() + " at " + d.address.hosts[c.host].Addr
		direct, err := c.direct(d.server.replicates())
		if err != nil || !direct {
			return err
		}
		status, err := c.pairs("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
		if err != nil {
			return err
		}
		row, err := c.row(limitsQuery)
		if err != nil {
			return err
		}
		figures := make([]int, 5)
		for i, text := range append(row, status["threads_connected"]) {
			if figures[i], err = strconv.Atoi(text); err != nil {
				return db.Fatalf("read how many connections it takes", "%q is no number", text)
			}
		}
		most, user, own, exempt, connected := figures[0], figures[1], figures[2], figures[3], figures[4]
		free.Tighten(most, connected-1, fmt.Sprintf("max_connections = %d", most), "raise max_connections")
		if user > 0 && exempt == 0 {
			free.Tighten(user, own-1, fmt.Sprintf("max_user_connections = %d", user), "raise max_user_connections")
		}
		return nil
	})
	return free, err
}

// limitsQuery asks for max_connections and for max_user_connections, whose session value is the account's if it has
// one. It also asks for the known number of connections, at least those from this machine. The last column shows
// whether the user is an administrator, to whom the server's value does not apply.
const limitsQuery = `SELECT @@GLOBAL.max_connections, @@SESSION.max_user_connections,
	(SELECT COUNT(*) FROM information_schema.PROCESSLIST p, information_schema.PROCESSLIST me
		WHERE me.ID = CONNECTION_ID() AND p.USER = me.USER AND SUBSTRING_INDEX(p.HOST, ':', 1) = SUBSTRING_INDEX(me.HOST, ':', 1)),
	@@SESSION.max_user_connections = @@GLOBAL.max_user_connections AND EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES
		WHERE GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''') AND PRIVILEGE_TYPE IN ('SUPER', 'CONNECTION ADMIN', 'CONNECTION_ADMIN'))`

// direct reports whether no proxy is known to be between client and server. spread requires more evidence than the
// handshake.
func (c *link) direct(spread bool) (bool, error) {
	row, err := c.row("SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()")
	if err != nil {
		return false, err
	}
	_, own, _ := net.SplitHostPort(c.socket.LocalAddr().String())
	_, seen, _ := net.SplitHostPort(row[1])
	number, known := greetedNumber(c.greeting)
	return known && row[0] == strconv.FormatUint(uint64(number), 10) && (!spread || own == seen), nil
}

// greetingBytes is the number of bytes that are kept of a server's first packet.
const greetingBytes = 128

// greetedNumber parses the connection number, a thread number of 4 bytes, from the server's first packet
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html).
func greetedNumber(packet []byte) (number uint32, ok bool) {
	const head, protocol = 4, 10
	if len(packet) <= head || packet[head] != protocol {
		return 0, false
	}
	_, rest, ok := bytes.Cut(packet[head+1:], []byte{0}) // the version
	if !ok || len(rest) < 4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(rest), true
}
