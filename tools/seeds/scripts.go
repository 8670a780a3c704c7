package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// lastScripts is the number of seeds of scripts by default.
const lastScripts = 1000

// scripts is the book of healthy runs of the workload script.
var scripts = &book{
	runs: "stroppy-runs/scripts", count: lastScripts, record: "data/scripts.json", page: "docs/tables/scripts.md",
	draw: func(seed int) drawn { return drawScript(seed) }, pageOf: scriptsPage, short: true,
}

// engine is a database on which scripts run.
type engine struct {
	name, cluster string   // without a cluster it is a file
	isolations    []string // the empty one is the default
	locks         bool     // it has SELECT FOR UPDATE
}

func engines() []engine {
	levels := []string{"", "read committed", "repeatable read", "serializable"}
	return []engine{
		{name: "sqlite", isolations: []string{""}},
		{"postgres", "postgres:1?memory=on&loopback=on", levels, true},
		{"mariadb", "mariadb:1?memory=on&loopback=on", levels, true},
		{"mysql", "mysql:1?memory=on&loopback=on", levels, true},
		{"pgbouncer", "postgres:1?pooler=transaction&memory=on&loopback=on", levels, true},
	}
}

// sql is a script file of a schema, with the reasons for which a plan must leave it out.
type sql struct {
	name     string
	reads    bool // it writes nothing
	several  bool // it writes in several transactions, so no invariant may be a sum over transactions
	unsummed bool // it changes the sums in an amount that no variable has
	deletes  bool // it deletes rows, so that tracked rows are undecided
	computes bool // it writes what it computed, so it needs an isolation without lost updates
	locks    bool // it has SELECT FOR UPDATE
}

// schema is a folder below tools/seeds/scripts.
type schema struct {
	name       string
	files      []sql
	tables     []string // that can be tracked
	invariants []string // each holds whatever the files do
	sum        string   // an invariant with sum()
}

func schemas() []schema {
	return []schema{
		{"pgbench", []sql{
			{name: "tpcb"}, {name: "piped"}, {name: "branches", several: true}, {name: "rejected"},
			{name: "select", reads: true},
			{name: "steps", several: true}, {name: "computed", computes: true}, {name: "locked", locks: true},
		}, []string{"pgbench_accounts(aid)", "pgbench_tellers(tid)", "pgbench_branches(bid)"}, []string{
			"accounts: unchanged: SELECT count(*) FROM pgbench_accounts",
			"branches: 2: SELECT count(*) FROM pgbench_branches",
			"books: equal: SELECT sum(abalance) FROM pgbench_accounts;" +
				" SELECT coalesce(sum(delta), 0) FROM pgbench_history",
			"tellers: equal: SELECT sum(tbalance) FROM pgbench_tellers; SELECT sum(bbalance) FROM pgbench_branches",
		}, "moved: sum(:delta): SELECT sum(bbalance) FROM pgbench_branches"},
		{"sbtest", []sql{
			{name: "index"}, {name: "other"}, {name: "readwrite"}, {name: "rejected"},
			{name: "rollback", several: true}, {name: "piped"}, {name: "point", reads: true},
			{name: "range", reads: true}, {name: "replace", deletes: true, unsummed: true},
			{name: "steps", several: true}, {name: "computed", computes: true}, {name: "locked", locks: true},
		}, []string{"sbtest1(id)"}, []string{
			"rows: 1000: SELECT count(*) FROM sbtest1",
			"ids: equal: SELECT count(*), min(id), max(id) FROM sbtest1;" +
				" SELECT count(DISTINCT id), 1, 1000 FROM sbtest1",
			"texts: empty: SELECT id FROM sbtest1 WHERE c = 'gone' OR id < 1 OR id > 1000",
		}, "bumps: sum(:bumps): SELECT sum(k) FROM sbtest1"},
		{"shop", []sql{
			{name: "order"}, {name: "piped"}, {name: "delivery"}, {name: "stray"},
			{name: "hesitant", several: true}, {name: "report", reads: true},
			{name: "steps", several: true}, {name: "computed", computes: true}, {name: "locked", locks: true},
		}, []string{"shop_stock(item)", "shop_customer(id)", "shop_order(id)"}, []string{
			"orphans: empty: SELECT o.id FROM shop_order o LEFT JOIN shop_stock s ON s.item = o.item" +
				" WHERE s.item IS NULL",
			"enough: empty: SELECT item, pieces FROM shop_stock WHERE pieces < 0",
			"prices: unchanged: SELECT sum(price) FROM shop_stock",
			"books: equal: SELECT sum(first_pieces) - sum(pieces) FROM shop_stock;" +
				" SELECT coalesce(sum(amount), 0) - (SELECT coalesce(sum(amount), 0) FROM shop_delivery) FROM shop_order",
		}, "sold: sum(:sold): SELECT coalesce(sum(amount), 0) FROM shop_order"},
	}
}

// scriptPlan is one healthy run of scripts.
type scriptPlan struct {
	seed       int
	engine     engine
	schema     schema
	files      []string // with their weights
	clients    int
	count      int // transactions to run
	rate       int // transactions per second; 0 is the closed loop
	mode       string
	isolation  string
	receipts   bool
	invariants []string
	tracked    []string
}

// drawScript makes the plan of a seed. It draws only what the isolation promises to keep right.
func drawScript(seed int) scriptPlan {
	random := rand.New(rand.NewPCG(uint64(seed), 16))
	chance := func(percent int) bool { return random.IntN(100) < percent }
	engines, schemas := engines(), schemas()
	p := scriptPlan{seed: seed, engine: engines[random.IntN(len(engines))], schema: schemas[random.IntN(len(schemas))]}
	p.clients = 2 + random.IntN(23)
	p.count = 3000 + random.IntN(1500) // a third of them may be refused
	if chance(30) {
		p.rate = 600 + random.IntN(900)
	}
	p.mode = []string{"interactive", "pipelined"}[random.IntN(2)]
	p.isolation = p.engine.isolations[random.IntN(len(p.engine.isolations))]
	p.receipts = chance(80)
	if chance(40) {
		p.tracked = some(random, p.schema.tables)
	}
	files := p.drawFiles(random)
	if chance(70) {
		p.invariants = some(random, p.schema.invariants)
		if !slices.ContainsFunc(files, func(f sql) bool { return f.several || f.unsummed }) {
			p.invariants = append(p.invariants, p.schema.sum)
		}
	}
	return p
}

// drawFiles draws up to four files that the plan allows, with their weights. One of them writes.
func (p *scriptPlan) drawFiles(random *rand.Rand) []sql {
	possible := slices.DeleteFunc(slices.Clone(p.schema.files), func(f sql) bool {
		serializable := p.isolation == "serializable" || p.engine.cluster == ""
		return f.computes && !serializable || f.locks && !p.engine.locks || f.deletes && p.tracked != nil
	})
	for {
		files := some(random, possible)
		files = files[:min(len(files), 4)]
		if !slices.ContainsFunc(files, func(f sql) bool { return !f.reads }) {
			continue
		}
		for _, f := range files {
			p.files = append(p.files, f.name+"@"+strconv.Itoa(1+random.IntN(9)))
		}
		return files
	}
}

// some draws one or more items of a list, in any order.
func some[T any](random *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+random.IntN(len(list))]
}

func (p scriptPlan) needsMySQL() bool { return p.engine.name == "mysql" }

// wants returns valid, or measured if nothing is checked.
func (p scriptPlan) wants() string {
	if !p.receipts && p.invariants == nil && p.tracked == nil {
		return "measured"
	}
	return "valid"
}

func (p scriptPlan) arguments(mysql string) []string {
	folder := "tools/seeds/scripts/" + p.schema.name + "/"
	args := []string{"run", "script", "--seed", strconv.Itoa(p.seed), "--init", folder + "tables.sql"}
	for _, file := range p.files {
		name, weight, _ := strings.Cut(file, "@")
		args = append(args, "--script", folder+name+".sql@"+weight)
	}
	if cluster := p.engine.cluster; cluster != "" {
		if p.needsMySQL() && mysql != "" {
			cluster += "&bin=" + url.QueryEscape(mysql)
		}
		args = append(args, "--cluster", cluster)
	}
	args = append(args, "--count", strconv.Itoa(p.count), "--clients", strconv.Itoa(p.clients),
		"--mode", p.mode, "--retries", "1000")
	if p.isolation != "" {
		args = append(args, "--isolation", p.isolation)
	}
	if p.rate > 0 {
		args = append(args, "--rate", strconv.Itoa(p.rate))
	}
	if !p.receipts {
		args = append(args, "--no-receipts")
	}
	for _, table := range p.tracked {
		args = append(args, "--track", table)
	}
	for _, invariant := range p.invariants {
		args = append(args, "--invariant", invariant)
	}
	if p.invariants != nil {
		args = append(args, "--audit-interval", "300ms")
	}
	return args
}

func (p scriptPlan) entry() attempt {
	loop := "closed loop"
	if p.rate > 0 {
		loop = fmt.Sprintf("%d per second", p.rate)
	}
	settings := []string{
		strings.Join(p.files, " "), fmt.Sprintf("%d transactions, %d clients, %s", p.count, p.clients, loop),
		p.mode, cmp.Or(p.isolation, "default isolation"),
	}
	if !p.receipts {
		settings = append(settings, "no receipts")
	}
	for _, invariant := range p.invariants {
		name, _, _ := strings.Cut(invariant, ":")
		settings = append(settings, "invariant "+name)
	}
	for _, table := range p.tracked {
		settings = append(settings, "track "+table)
	}
	return attempt{Seed: p.seed, Cluster: p.engine.name, Workload: p.schema.name, Settings: strings.Join(settings, "; ")}
}

// scriptsPage returns the page of a record: counts, and the runs that were not right.
func scriptsPage(list []attempt) string {
	var page strings.Builder
	page.WriteString("# Seeded runs of scripts\n\n" +
		"`go run ./tools/seeds -scripts` writes this page. A run has no faults, and sends 3,000 to 4,500 transactions of " +
		"[your own SQL](../how-to/run-your-own-sql.md). Its seed draws the engine, the schema, the scripts and the " +
		"settings (`tools/seeds/scripts.go`). The isolation promises to keep these scripts right, so every run must be " +
		"valid. A run without receipts, invariants and tracked tables must be measured. `go run ./tools/seeds -scripts " +
		"-list -from SEED -count 1` prints the command of a run.\n\n")
	page.WriteString(scriptCounts(list))
	rows := ""
	for _, a := range list {
		if a.Aside != "" || a.Verdict != drawScript(a.Seed).wants() {
			rows += fmt.Sprintf("| %d | %s | %s | %s | %.0f | %s |\n",
				a.Seed, a.Cluster, a.Workload, a.Settings, a.Load, verdictOf(a))
		}
	}
	if rows == "" {
		page.WriteString("\nEvery run was right.\n")
	} else {
		page.WriteString("\nThese runs were not right, or do not count. Load is the highest load average during the run." +
			"\n\n" +
			"| seed | engine | schema | settings | load | verdict |\n|---|---|---|---|---|---|\n" + rows)
	}
	return page.String()
}

// scriptCounts returns a table of the verdicts by engine and schema, without the runs that do not count.
func scriptCounts(list []attempt) string {
	text := "| engine | server | schema | runs | committed | valid | measured | invalid | unknown | not carried out |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n"
	row := func(engine, server, schema string, verdicts map[string]int, committed uint64) {
		runs := 0
		for _, n := range verdicts {
			runs += n
		}
		if runs > 0 {
			text += fmt.Sprintf("| %s | %s | %s | %d | %d | %d | %d | %d | %d | %d |\n", engine, server, schema, runs, committed,
				verdicts["valid"], verdicts["measured"], verdicts["invalid"], verdicts["unknown"], verdicts["none"])
		}
	}
	all, total := map[string]int{}, uint64(0)
	for _, e := range engines() {
		for _, s := range schemas() {
			verdicts, server, committed := map[string]int{}, "", uint64(0)
			for _, a := range list {
				if a.Aside == "" && a.Cluster == e.name && a.Workload == s.name {
					verdicts[a.Verdict]++
					all[a.Verdict]++
					server = cmp.Or(a.Server, server)
					committed += a.Committed
				}
			}
			row(e.name, server, s.name, verdicts, committed)
			total += committed
		}
	}
	row("all", "", "", all, total)
	return text
}
