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

// restartCrashed restarts nodes whose servers have crashed, until the cluster is stopped. A Galera server ends itself
// with SIGABRT if it has missed more changes than the others still keep. At its next start it gets all data.
func (c *Cluster) restartCrashed() {
	for wait.Sleep(c.Life, superviseEvery) == nil {
		for _, n := range c.List() {
			if crash := n.Crashed(); crash != nil {
				c.startCrashed(n, crash)
			}
		}
	}
}

// startCrashed restarts a node in the background, unless somebody starts it already. A node that is killed or
// replaced meanwhile is left alone.
func (c *Cluster) startCrashed(n *node, crash error) {
	if _, already := c.restarting.LoadOrStore(n, true); already {
		return
	}
	c.Mu.Lock()
	starting := n.starting > 0
	c.Mu.Unlock()
	if starting {
		c.restarting.Delete(n)
		return
	}
	c.Note("%s has crashed (%v)%s", n.Name(), crash, n.lastError())
	c.Tasks.Go(func() {
		defer c.restarting.Delete(n)
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
	})
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
