package mysql

import (
	"context"
	"os"
	"regexp"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// restartAfter is the time between a crash and the restart: RestartSec of mariadb.service, the unit of MariaDB's
// packages, which has Restart=on-abnormal.
const restartAfter = 5 * time.Second

// restartCrashed restarts a node whenever its server has crashed, until the cluster is stopped, unless somebody starts
// it already. A Galera server ends itself with SIGABRT if it has missed more changes than the others still keep. At its
// next start it gets all data.
func (c *Cluster) restartCrashed(n *node) {
	for wait.Sleep(c.Life, superviseEvery) == nil {
		c.Mu.Lock()
		starting := n.starting > 0
		c.Mu.Unlock()
		if crash := n.Crashed(); crash != nil && !starting {
			c.Note("%s has crashed (%v)%s", n.Name(), crash, n.lastError())
			c.startCrashed(n)
		}
	}
}

// startCrashed restarts a node, unless it is killed or replaced meanwhile.
func (c *Cluster) startCrashed(n *node) {
	ctx, cancel := context.WithTimeout(n.Life(), renewLimit)
	defer cancel()
	if wait.Sleep(ctx, restartAfter) != nil || n.Crashed() == nil {
		return
	}
	c.Note("%s is started anew, %v after its crash, as MariaDB's own unit has it", n.Name(), restartAfter)
	if err := n.Restart(ctx); err != nil {
		c.Note("%v", err)
		return
	}
	c.Note("%s is back", n.Name())
}

// errorLine matches the message of an error line in the server's log.
var errorLine = regexp.MustCompile(`(?m)^.*\[ERROR\] (.*)$`)

// lastError returns the last error in the server's log as a part of a note, or "" if there is none.
func (n *node) lastError() string {
	text, _ := os.ReadFile(n.Log())
	found := errorLine.FindAllSubmatch(text, -1)
	if found == nil {
		return ""
	}
	return "; the last error in its log: " + host.LastLines(found[len(found)-1][1])
}
