package script_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/script"
)

// pgbench is the real program with its server. STROPPY_TEST_PGBENCH names another version of the program.
type pgbench struct {
	program, url, dir string
}

func startPgbench(t *testing.T) *pgbench {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	program := os.Getenv("STROPPY_TEST_PGBENCH")
	if program == "" {
		var err error
		if program, err = server.PGBin("pgbench"); err != nil {
			t.Skip("skipped engine: pgbench: install the Debian package postgresql")
		}
	}
	alone := cluster.Alone(nil)
	alone.InMemory = true
	s, err := server.Start(context.WithoutCancel(t.Context()), alone)
	if err != nil {
		t.Skip("skipped engine: postgres: " + err.Error())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &pgbench{program, s.URL(), t.TempDir()}
}

// run runs a script once in each of the clients, and returns what pgbench prints about it.
func (b *pgbench) run(t *testing.T, text string, clients int, flags ...string) string {
	t.Helper()
	path := filepath.Join(b.dir, "script.sql")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "-n", "-t", "1", "-c", strconv.Itoa(clients), "-f", path, "--random-seed", "5432", "-D", "default_seed=5432")
	for name, v := range defined() {
		if v.Kind == script.Text {
			flags = append(flags, "-D", name+"="+string(v.Text))
		}
	}
	out, err := exec.CommandContext(t.Context(), b.program, append(flags, b.url)...).CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out)
}

// TestRandomExpressionsAgreeWithPgbench evaluates seeded expressions by the package and by the real program: 10,000 in
// make seeds, 2,000 otherwise. An expression is the same value in both, an error in both, or a mistake of syntax in both.
func TestRandomExpressionsAgreeWithPgbench(t *testing.T) {
	b := startPgbench(t)
	const batch, connections = 1000, 80
	count := 2000
	if os.Getenv("STROPPY_TEST_FAULTS") == "all" {
		count = 10_000
	}
	mostMistakes := count / 100
	g := &generator{rand.New(rand.NewPCG(49, 10_000))}
	var good, bad, wrong []string
	values := map[string]script.Value{}
	for range count {
		e := g.expression()
		p, err := script.Parse([]script.File{{Name: "t", Text: `\set x ` + e, Weight: 1}}, defined())
		if err != nil {
			wrong = append(wrong, e)
			continue
		}
		v, err := p.NewMachine(1, 2).Eval(p.Scripts[0].Steps[0].Expr)
		if err != nil {
			bad = append(bad, e)
			continue
		}
		good, values[e] = append(good, e), v
	}
	t.Logf("%d values, %d errors, %d mistakes of syntax", len(good), len(bad), len(wrong))
	if len(good) < count/2 || len(bad) < count/20 || len(wrong) < mostMistakes {
		t.Errorf("the generator does not vary")
	}
	for list := range slices.Chunk(good, batch) {
		var text bytes.Buffer
		for _, e := range list {
			fmt.Fprintf(&text, "\\set x debug(%s)\n", e)
		}
		out := b.run(t, text.String(), 1)
		got := regexp.MustCompile(`(?m)^debug\(script=0,command=(\d+)\): (.*)$`).FindAllStringSubmatch(out, -1)
		if len(got) != len(list) {
			t.Fatalf("pgbench ends at %s: %s", list[min(len(got), len(list)-1)], out)
		}
		for i, e := range list {
			if !sameValue(got[i][2], values[e]) {
				t.Errorf("%s: %s, pgbench %s", e, values[e].Append(nil), got[i][2])
			}
		}
	}
	for list := range slices.Chunk(bad, connections) {
		text := bytes.NewBufferString("\\set client :client_id\n\\set client_id 0\n")
		for i, e := range list {
			fmt.Fprintf(text, "\\if :client = %d\n\\set x %s\n\\endif\n", i, e)
		}
		out := b.run(t, text.String(), len(list))
		for i, e := range list {
			if !regexp.MustCompile(fmt.Sprintf(`client %d aborted in command \d+ \(set\)`, i)).MatchString(out) {
				t.Errorf("pgbench accepts %s", e)
			}
		}
	}
	for _, e := range wrong[:min(len(wrong), mostMistakes)] {
		if out := b.run(t, `\set x `+e, 1); !strings.Contains(out, `in command "set"`) {
			t.Errorf("pgbench accepts %s: %s", e, out)
		}
	}
}

// sameValue compares a value with the text of pgbench's debug. Two libraries of mathematics may differ in the last digits
// of exp, ln and pow.
func sameValue(debug string, v script.Value) bool {
	kind, text, _ := strings.Cut(debug, " ")
	if v.Kind == script.Double && kind == "double" {
		want, err := strconv.ParseFloat(text, 64)
		return err == nil && (string(v.Append(nil)) == text || math.Abs(want-v.Double) <= 1e-13*math.Abs(want))
	}
	kinds := map[string]script.Kind{"null": script.Null, "boolean": script.Boolean, "int": script.Integer}
	k, known := kinds[kind]
	return known && k == v.Kind && (k == script.Null || text == string(v.Append(nil)))
}

// generator draws expressions. It avoids abs of the least integer and of a boolean, which pgbench computes wrongly.
type generator struct{ *rand.Rand }

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// expression draws one whose value may come from exp, ln or pow only at its end: elsewhere a difference in the last digit
// would change a comparison or a rounded value.
func (g *generator) expression() string {
	switch g.IntN(10) {
	case 0:
		return fmt.Sprintf("exp(%s) * pow(%s, %s)", g.real(), g.real(), g.pick("2", "-3", "0.5", "7", "0"))
	case 1:
		return fmt.Sprintf("ln(%s) / power(%d, %s)", g.real(), g.IntN(20), g.real())
	case 2, 3, 4:
		return g.condition(1 + g.IntN(3))
	}
	return g.number(1 + g.IntN(3))
}

func (g *generator) real() string {
	return fmt.Sprintf("%s%d.%d", g.pick("", "", "-"), g.IntN(12), g.IntN(1000))
}

func (g *generator) atom() string {
	switch g.IntN(36) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11:
		return strconv.Itoa(g.IntN(10))
	case 12, 13:
		return strconv.FormatInt(g.Int64()>>g.IntN(63), 10)
	case 14, 15, 16, 17, 18, 19:
		return g.real()
	case 20:
		return g.pick("1e3", "2.5E-3", ".5", "7.", "1e300", "0.0", "1.5e19", "9223372036854775807", "-9223372036854775808")
	case 21:
		return g.pick("null", "NULL", ":n", "true", "False", ":word")
	}
	return g.pick(":i", ":d", ":foo", ":scale", ":client_id", ":random_seed", ":maxint", ":minint", ":i", ":d", ":scale", ":random_seed",
		":i", ":d", ":scale", ":foo", ":i", ":d", ":scale")
}

// number draws operands and operators without parentheses, so that precedence decides.
func (g *generator) number(depth int) string {
	if depth == 0 {
		return g.atom()
	}
	var b strings.Builder
	for i := range 1 + g.IntN(4) {
		if i > 0 {
			b.WriteString(g.pick(" + ", "-", "*", " / ", "%", "+", " - ", "|", " & ", "#", " << ", ">>"))
		}
		b.WriteString(g.pick("", "", "", "", "", "- ", "+", "~ "))
		b.WriteString(g.operand(depth - 1))
	}
	return b.String()
}

func (g *generator) operand(depth int) string {
	switch g.IntN(14) {
	case 0:
		return "(" + g.number(depth) + ")"
	case 1:
		return fmt.Sprintf("%s(%s)", g.pick("int", "double", "sqrt", "Int", "hash", "hash_fnv1a", "hash_murmur2"), g.number(depth))
	case 2:
		return fmt.Sprintf("%s(%s, %s)", g.pick("mod", "hash", "hash_fnv1a"), g.number(depth), g.number(depth))
	case 3:
		return fmt.Sprintf("%s(%s,%s, %s)", g.pick("least", "greatest"), g.number(depth), g.atom(), g.number(depth))
	case 4:
		return fmt.Sprintf("permute(%s, %s%s)", g.number(depth), g.pick("2", "3", "10", "1000", "65536", ":maxint", g.atom()), g.pick("", ", 7", ", "+g.number(depth)))
	case 5:
		return fmt.Sprintf("CASE WHEN %s THEN %s %s end", g.condition(depth), g.number(depth), g.pick("", "else "+g.atom(), "when "+g.condition(depth)+" then 5 else 6"))
	case 6:
		return fmt.Sprintf("abs(%s)", g.real())
	case 7:
		same := strconv.FormatInt(g.Int64N(1<<40)-1<<39, 10)
		return fmt.Sprintf("random%s)", g.pick("("+same+","+same, "_gaussian("+same+", "+same+", 3", "_zipfian("+same+", "+same+", 1.5", "_exponential("+same+", "+same+", 3"))
	case 8:
		return "pi()"
	}
	return g.atom()
}

func (g *generator) condition(depth int) string {
	if depth == 0 {
		if g.IntN(20) == 0 {
			return g.pick("1", ":badtrue", "2.0", ":word")
		}
		return g.pick("true", "FALSE", ":t", ":f", ":bla", "1 = 1", "2<1", "null")
	}
	var b strings.Builder
	for i := range 1 + g.IntN(3) {
		if i > 0 {
			b.WriteString(g.pick(" and ", " OR ", " or ", " AND "))
		}
		b.WriteString(g.pick("", "", "", "not "))
		switch g.IntN(6) {
		case 0:
			b.WriteString("(" + g.condition(depth-1) + ")")
		case 1:
			b.WriteString(g.condition(0))
		case 2:
			b.WriteString(g.number(depth-1) + g.pick(" IS NULL", " isnull", " NOTNULL", " is not null", " is true", " is not false"))
		case 3:
			b.WriteString(g.condition(depth-1) + g.pick(" is true", " is not false", " isnull", " is not null = false"))
		default:
			b.WriteString(g.number(depth-1) + g.pick("<", " <= ", "=", " <> ", "!=", " > ", ">=") + g.number(depth-1))
			if g.IntN(20) == 0 {
				b.WriteString(g.pick("=", " < ", " true", ")", " is 1", " then") + g.atom())
			}
		}
	}
	return b.String()
}

// TestStatementsAgreeWithPgbench compares the texts of statements, and the branches, with the real program and its simple
// protocol. pgbench also sends semicolons and empty statements.
func TestStatementsAgreeWithPgbench(t *testing.T) {
	b := startPgbench(t)
	for _, text := range []string{
		"SELECT 1;SELECT 2",
		";;SELECT 1;;",
		"-- one\n  SELECT 1 -- two\n;\n-- three\n",
		"/*+ hint */ SELECT /* ; /* ' */ */ 1;",
		"SELECT ';''--', 1 AS \"a;\"\"b\", $$ ; $$, $x$;$$;$x$",
		`SELECT E'a\';''b', e'\\'; SELECT 'a\'`,
		"SELECT 1 AS a$b$c; SELECT 1 AS c",
		"SELECT :i, :i::int, (ARRAY[1,2])[1:2], ':x'::text, '1::i', '12:30', :n IS NULL;",
		"SELECT :d :: float, 1+:scale:i;",
		"SELECT 1 \\set x 1\nSELECT :x;",
		"\\set x 2\r\nSELECT\r\n:x;\r\n",
		"SELECT 1 \\; SELECT :i \\; SELECT 3;",
		"CREATE FUNCTION pg_temp.f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; SELECT 3",
		"BEGIN; SAVEPOINT a; ROLLBACK TO a; END;",
		"\\if :scale = 2\nSELECT 1;\n\\elif :t \\\n and true\n\\if :n\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n\\elif 1/0 = 1\nSELECT 4;\n\\endif\nSELECT 5;",
		"\\set a TRUE\n\\set b -54.21E-2\n\\set e 2.0\n\\set g NULL\nSELECT :a, :b, :e, :g;",
		"\\sleep 1ms\n\\SLEEP :scale us\nSELECT 1",
	} {
		p := parse(t, text)
		want, err := run(p, p.NewMachine(1, 2), 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, "sleep ") })
		out := b.run(t, text, 1, "--debug", "-M", "simple")
		got := []string{}
		for _, m := range regexp.MustCompile(`(?s)client 0 sending (.*?)\npgbench: client 0 receiving`).FindAllStringSubmatch(out, -1) {
			if sent := strings.TrimRight(m[1], "; \r\n"); sent != "" {
				got = append(got, sent)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, pgbench %q", text, want, got)
		}
	}
}

// TestRefusedScriptsFailInPgbench lists the scripts that only this package refuses. docs/reference/script-language.md
// has the reasons.
func TestRefusedScriptsFailInPgbench(t *testing.T) {
	b := startPgbench(t)
	stricter := []string{`\shell echo`, `\setshell x echo`, "SELECT ':scale'", `\set b 1` + strings.Repeat("+1", 6000)}
	for _, c := range refusals {
		out := b.run(t, c[0], 1)
		fails := strings.Contains(out, "aborted") || !strings.Contains(out, "actually processed: 1/1")
		if fails == slices.Contains(stricter, c[0]) {
			t.Errorf("%.60q: pgbench fails: %v: %.300s", c[0], fails, out)
		}
	}
}
