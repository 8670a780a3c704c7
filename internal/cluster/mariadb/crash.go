package mariadb

import (
	"context"
	"os"
	"regexp"
	"time"

	"stroppy/internal/cluster"
)

// restartAfter is how long after its crash a server is started anew: RestartSec of
// mariadb.service, the unit of MariaDB's packages, which has Restart=on-abnormal.
const restartAfter = 5 * time.Second

// restartCrashed starts nodes anew whose servers have crashed, until the cluster is stopped. A server
// of Galera ends itself with SIGABRT where it has missed more than the others still have for
// it, and gets all data at its next start.
func (c *Cluster) restartCrashed() {
	for cluster.Sleep(c.Life, superviseEvery) == nil {
		for _, n := range c.List() {
			if crash := n.Crashed(); crash != nil {
				c.startCrashed(n, crash)
			}
		}
	}
}

// startCrashed starts a node anew in the background, unless somebody starts it already. One
// that is killed or replaced meanwhile is left alone.
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
		if cluster.Sleep(ctx, restartAfter) != nil || n.Crashed() == nil {
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

// errorLine is what a line of the server's log says that is about an error.
var errorLine = regexp.MustCompile(`(?m)^.*\[ERROR\] (.*)$`)

// lastError is what the server's log says last of an error, to be added to a note; nothing of a
// log without one.
func (n *node) lastError() string {
	text, _ := os.ReadFile(n.Log())
	found := errorLine.FindAllSubmatch(text, -1)
	if found == nil {
		return ""
	}
	return "; the last error in its log: " + cluster.LastLines(found[len(found)-1][1])
}
