package script_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/script"
	"stroppy/internal/tier"
)

// defined are the variables that the tests have on the command line. Their types are found in expressions.
func defined() map[string]script.Value {
	list := map[string]script.Value{}
	for name, text := range map[string]string{"foo": "-10.1", "bla": "false", "i": "+3", "n": "null", "t": "t", "f": "of", "d": "1.0",
		"word": "bla", "badtrue": "trueXXX", "maxint": "9223372036854775807", "minint": "-9223372036854775808"} {
		list[name] = script.Value{Kind: script.Text, Text: []byte(text)}
	}
	for name, i := range map[string]int64{"scale": 1, "client_id": 0, "default_seed": 5432, "random_seed": 5432} {
		list[name] = script.Value{Kind: script.Integer, Int: i}
	}
	return list
}

func parse(t testing.TB, text string) *script.Program {
	t.Helper()
	p, err := script.Parse([]script.File{{Name: "t.sql", Text: text, Weight: 1}}, defined())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// run executes the steps of a script without a database, and returns the values of debug and the statements.
func run(p *script.Program, m *script.Machine, which int) (seen []string, err error) {
	m.Debug = func(_ string, _ int, v script.Value) {
		seen = append(seen, strings.TrimSpace(v.Kind.String()+" "+strings.TrimPrefix(string(v.Append(nil)), "NULL")))
	}
	steps := p.Scripts[which].Steps
	for at := 0; at < len(steps); at++ {
		s := &steps[at]
		switch s.Op {
		case script.Assign:
			v, err := m.Eval(s.Expr)
			if err != nil {
				return seen, err
			}
			m.Vars[s.Slot] = v
		case script.Jump:
			at = s.Target - 1
		case script.JumpUnless:
			holds, err := m.True(s.Expr)
			if err != nil {
				return seen, err
			}
			if !holds {
				at = s.Target - 1
			}
		case script.Sleep:
			d, err := m.Duration(s)
			if err != nil {
				return seen, err
			}
			seen = append(seen, "sleep "+d.String())
		case script.Execute:
			if err := m.Bound(s.SQL); err != nil {
				return seen, err
			}
			seen = append(seen, s.SQL.Text(func(n int) string { return string(m.Vars[s.SQL.Params[n-1]].Append(nil)) }))
		}
	}
	return seen, nil
}

// values are expressions and pgbench's values for them, from pgbench's manual and from pgbench 15 and 17.
var values = [][2]string{
	{"abs(-4)", "integer 4"}, {"greatest(5, 4, 3, 2)", "integer 5"}, {"11 + least(-5, -4, -3, -2)", "integer 6"},
	{"int(7.3)", "integer 7"}, {"int(2.5)", "integer 2"}, {"int(-3.5)", "integer -4"},
	{"17 / (4|1) + ( 4 + (7 >> 2))", "integer 8"},
	{"- (3 * 4 - (-(~ 1) + -(~ 0))) / -1 + 3 % -1", "integer 9"},
	{"64 % (((2 + 1 * 2 + (1 # 2) | 4 * (2 & 11)) - (1 << 2)) + 2)", "integer 12"},
	{"sqrt(+1.5 * 2.0) * abs(-0.8E1)", "double 13.856406460551"},
	{"double(1 + 1) * (-75.0 / :foo)", "double 14.8514851485149"}, {"pi() * 4.9", "double 15.39380400259"},
	{"greatest(4, 2, -1.17) * 4.0 * Ln(Exp(1.0))", "double 16"}, {"least(-5.18, .0E0, 1.0/0) * -3.3", "double 17.094"},
	{"pow(-3,3)", "double -27"}, {"pow(2.0,10)", "double 1024"}, {"pow(0,0)", "double 1"}, {"pow(-2,-3)", "double -0.125"},
	{"power(-5.0,-5.0)", "double -0.00032"}, {"pow(9223372036854775807, 2)", "double 8.50705917302346e+37"},
	{"pow(10,30)", "double 1e+30"}, {"1.0/0", "double Infinity"}, {"ln(0)", "double -Infinity"}, {"0.0000123", "double 1.23e-05"},
	{"1.0 = 0.0 and 1.0 != 0.0", "boolean false"}, {"0 = 1 Or 1.0 = 1", "boolean true"},
	{"case when 0 < 1 then 32 else 0 end", "integer 32"}, {"case when false THEN -1 when 1 = 1 then 13 + 19 + 2.0 end", "double 34"},
	{"case when false then 1 end", "null"}, {"CASE WHEN 1 THEN TRUE END AND CASE WHEN :n THEN NULL ELSE TRUE END", "boolean true"},
	{"10 + mod(13 * 7 + 12, 13) - mod(-19 * 11 - 17, 19)", "integer 39"}, {"mod(7.5, 5)", "integer 3"},
	{"NOT (0 > 1) AND (1 <= 1) AND NOT (0 >= 1) AND (NOT :f) AND NOT (NOT TRUE)", "boolean true"},
	{"NULL + NULL * exp(NULL)", "null"}, {"NOT (NULL IS NOT NULL OR :d IS NULL)", "boolean true"},
	{":n ISNULL AND NOT :n IS TRUE AND :n IS NOT FALSE", "boolean true"}, {":d NOTNULL", "boolean true"},
	{"1 IS TRUE", "boolean false"}, {"null and false", "null"}, {"false and null", "boolean false"}, {"null or true", "null"},
	{":n IS NULL AND NOT :f AND :t", "boolean true"}, {":i + 1", "integer 4"}, {":scale * 100000", "integer 100000"},
	{"hash(10, 5432)", "integer -5817877081768721676"}, {"hash_murmur2(10, 5432) = hash(10)", "boolean true"},
	{"hash_fnv1a(10, 5432)", "integer -7793829335365542153"}, {"hash(10) = hash(10, :default_seed)", "boolean true"},
	{"case when 0 = 0 or (1 / 0) < 0 then -1 else (1 / 0) end", "integer -1"}, {"1 > 2 and 1 / 0 = 1", "boolean false"},
	{"-9223372036854775808", "integer -9223372036854775808"}, {"-(:minint + 1)", "integer 9223372036854775807"},
	{"permute(0, 2, 5431) = 0 and permute(1, 2, 5431) = 1", "boolean true"}, {"permute(0, 2, 5433)", "integer 1"},
	{"permute(9223372036854775796, 9223372036854775797, 5432)", "integer 520382784483822430"},
	{"permute(9223372036854775795, 9223372036854775797, 5432)", "integer 1143715004660802862"},
	{"permute(9223372036854775790, 9223372036854775797, 5432)", "integer 4542876852200565125"},
	{"permute(7, 1)", "integer 0"}, {"~ 1 + 2", "integer -4"}, {"2 * ~ 3 + 4", "integer -16"}, {"1 + ~ 2 | 8", "integer -2"},
	{"not 1 = 2", "boolean true"}, {"1 = 2 is null", "boolean false"}, {"1 is null is null", "boolean false"},
	{"1 - 2 - 3", "integer -4"}, {"- 2 * 3", "integer -6"}, {"-7 / 2", "integer -3"}, {"-7 % 3", "integer -1"}, {"1 << 65", "integer 2"},
	{"2 > 1", "boolean true"}, {"1.0 < 2", "boolean true"}, {"\\\r\n 1", "integer 1"}, {"2 >= 2.0", "boolean true"}, {"\\\n 1 + \\\n 1", "integer 2"}, {"1.", "double 1"},
	{"least(1, null, true)", "null"}, {"greatest(1, 2.5)", "double 2.5"}, {"abs(-2.5)", "double 2.5"},
}

func TestExpressionsHaveTheValuesOfPgbench(t *testing.T) {
	for _, c := range values {
		p := parse(t, `\set x debug(`+c[0]+")\n")
		got, err := run(p, p.NewMachine(1, 2), 0)
		if err != nil || !slices.Equal(got, []string{c[1]}) {
			t.Errorf("%s: %q, %v, want %q", c[0], got, err, c[1])
		}
	}
}

func TestExpressionsFailWithFileAndLine(t *testing.T) {
	for expression, problem := range map[string]string{
		"1/0":                                    "division by zero",
		"1 % 0":                                  "division by zero",
		"random(5,3)":                            "the range of a random function is empty: 5 is above 3",
		"random(:minint, :maxint)":               "the range of a random function is too large: -9223372036854775808 to 9223372036854775807",
		"random(0, :maxint)":                     "the range of a random function is too large: 0 to 9223372036854775807",
		"random_gaussian(0, 10, 1.0)":            "the parameter of random_gaussian must be at least 2, and is 1",
		"random_exponential(0, 10, 0.0)":         "the parameter of random_exponential must be above 0, and is 0",
		"random_exponential(0, 10, 0.0/0)":       "the parameter of random_exponential must be above 0, and is NaN",
		"random_zipfian(0, 10, 1)":               "the parameter of random_zipfian must be from 1.001 to 1000, and is 1",
		"random_zipfian(0, 10, 1000000)":         "the parameter of random_zipfian must be from 1.001 to 1000, and is 1e+06",
		":word + 1":                              `the value "bla" of the variable word is no number, boolean or null`,
		":badtrue or true":                       `the value "trueXXX" of the variable badtrue is no number, boolean or null`,
		"NOT 0.0":                                "the value is of type double where a boolean is needed",
		"TRUE + 2":                               "the value is of type boolean where an integer is needed",
		"TRUE = TRUE":                            "the value is of type boolean where an integer is needed",
		"ln(TRUE)":                               "the value is of type boolean where a number is needed",
		"random(FALSE, TRUE)":                    "the value is of type boolean where an integer is needed",
		"int(1E32)":                              "1e+32 does not fit into a 64-bit integer",
		"(1<<62) + (1<<62)":                      "the result of + does not fit into a 64-bit integer",
		"0 - (1<<62) - (1<<62) - (1<<62)":        "the result of - does not fit into a 64-bit integer",
		"2 * (1<<62)":                            "the result of * does not fit into a 64-bit integer",
		":minint / -1":                           "the result of / does not fit into a 64-bit integer",
		"-(:minint)":                             "the result of - does not fit into a 64-bit integer",
		"abs(:minint)":                           "the result of abs does not fit into a 64-bit integer",
		"permute(0, 0)":                          "the size of permute must be above 0",
		"case when 1 < 0 then 1 else ~ true end": "the value is of type boolean where an integer is needed",
	} {
		p := parse(t, "-- the first line\n\\set x "+expression)
		_, err := run(p, p.NewMachine(1, 2), 0)
		var mistake *script.Error
		if !errors.As(err, &mistake) || *mistake != (script.Error{File: "t.sql", Line: 2, Problem: problem}) {
			t.Errorf("%s: %v, want %s", expression, err, problem)
		}
	}
}

// refusals are scripts and the messages that refuse them, without the file's name.
var refusals = [][2]string{
	{"", "the script t.sql is empty"}, {"-- a comment alone", "the script t.sql is empty"},
	{`\set i 1 +`, "1:11: the expression ends where a value is expected"},
	{`\set i`, "1:7: the expression ends where a value is expected"},
	{`\set`, `1:5: \set needs the name of a variable and an expression`},
	{`\set . 1`, `1:6: "." is no name of a variable: begin with a letter, and write letters, digits and _`},
	{`\set 1a 1`, `1:6: "1a" is no name of a variable: begin with a letter, and write letters, digits and _`},
	{"SELECT 1;\n" + `  \set é noSuch()`, "2:10: unknown function nosuch; the functions are abs, debug, double, exp, greatest, hash, " +
		"hash_fnv1a, hash_murmur2, int, least, ln, mod, permute, pi, pow, power, random, random_exponential, random_gaussian, random_zipfian, sqrt"},
	{`\set i :nowhere`, `1:8: nothing sets the variable nowhere: use \set, \gset or --define, or write a space behind the colon`},
	{`\set i ;`, "1:8: unexpected character ';' in an expression"},
	{`\set i 1 -- one`, "1:13: unknown function one"},
	{`\set i ln(1.0, 2.0)`, "1:8: ln takes 1 arguments, not 2"}, {`\set i greatest()`, "1:8: greatest takes 1 to 16 arguments, not 0"},
	{`\set i hash()`, "1:8: hash takes 1 to 2 arguments, not 0"}, {`\set i hash(1,2,3)`, "1:8: hash takes 1 to 2 arguments, not 3"},
	{`\set i permute(1)`, "1:8: permute takes 2 to 3 arguments, not 1"}, {`\set i pi(1)`, "1:8: pi takes 0 arguments, not 1"},
	{`\set i least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)`, "1:8: least takes 1 to 16 arguments, not 17"},
	{`\set i CASE TRUE THEN 1 ELSE 0 END`, "1:13: unexpected true where WHEN is expected"},
	{`\set i CASE WHEN 1 THEN 1 ELSE 0`, "1:33: the expression ends where END is expected"},
	{`\set i 1 < 2 < 3`, "1:14: < follows another comparison: write parentheses"}, {`\set i (1`, "1:10: the expression ends where ) is expected"},
	{`\set i 1 2`, "1:10: unexpected 2 where an operator is expected"}, {`\set i 1 is 2`, "1:13: unexpected 2 where NULL, TRUE or FALSE is expected"},
	{`\set i 100000000000000000000`, "1:8: the integer 100000000000000000000 does not fit into 64 bits"},
	{`\set i 9223372036854775808`, "1:8: the integer 9223372036854775808 does not fit into 64 bits"},
	{`\set d 1.0E309`, "1:8: the number 1.0e309 does not fit into a double"}, {`\set d .1E310`, "1:8: the number .1e310 does not fit into a double"},
	{`\set d 1e-400`, "1:8: the number 1e-400 does not fit into a double"}, {`\set b 1 ! 2`, "1:10: unexpected character '!' in an expression"},
	{`\set b and`, "1:8: unexpected and where a value is expected"}, {`\set b f(`, "1:8: unknown function f"},
	{`\set b ` + strings.Repeat("(", 600), "1:508: the expression is nested more than 500 deep"},
	{`\set b 1` + strings.Repeat("+1", 6000), "1:10011: the expression has more than 5000 operators"},
	{`\if 1`, `1:1: \if has no \endif`}, {`\elif 1`, `1:1: \elif has no \if before it`}, {`\else`, `1:1: \else has no \if before it`},
	{`\endif`, `1:1: \endif has no \if before it`}, {"\\if 1\n\\else\n\\elif 0\n\\endif", `3:1: \elif follows \else`},
	{"\\if 1\n\\else\n\\else\n\\endif", `3:1: \else follows \else`}, {"\\if\n\\endif", "1:4: the expression ends where a value is expected"},
	{"\\if 0\n\\elif +\n\\endif", "2:8: the expression ends where a value is expected"},
	{"\\if 0\n\\else BAD\n\\endif", `2:7: \else has an argument too many: BAD`}, {"\\if 0\n\\endif BAD", `2:8: \endif has an argument too many: BAD`},
	{`\sleep`, `1:7: \sleep needs a number or a variable`}, {`\sleep too many args`, `1:8: \sleep needs a whole number or a variable, not too`},
	{`\sleep 1 week`, "1:10: unknown unit of time week: write us, ms or s"}, {`\sleep 1 s s`, `1:12: \sleep has an argument too many: s`},
	{`\sleep :nowhere`, `1:8: nothing sets the variable nowhere: use \set, \gset or --define, or write a space behind the colon`},
	{`\sleep 0.5 s`, `1:8: \sleep needs a whole number or a variable, not 0.5`},
	{`\gset`, `1:1: \gset must follow a statement`}, {"\\set i +1\n\\gset", `2:1: \gset must follow a statement`},
	{`SELECT 1 \gset a b`, `1:18: \gset has an argument too many: b`}, {"SELECT 1 AS i \\gset\n\\gset", `2:1: \gset must follow a statement`},
	{`SELECT 1 \gset a!`, `1:16: "a!" cannot begin the name of a variable`},
	{"\\startpipeline\nSELECT 1 \\gset f\n\\endpipeline", `2:10: \gset is not possible inside of a pipeline, whose results come at its end`},
	{"\\startpipeline\n\\startpipeline", `2:1: \startpipeline inside of a pipeline`},
	{`\endpipeline`, `1:1: \endpipeline outside of a pipeline: write \startpipeline before it`},
	{`\syncpipeline`, `1:1: \syncpipeline outside of a pipeline: write \startpipeline before it`},
	{"\\startpipeline\nSELECT 1;\n", `3:1: the script ends inside of a pipeline: write \endpipeline`},
	{"\\if 1\n\\startpipeline\n\\endif\n", `3:1: a pipeline begins or ends in one branch of \if only`},
	{`\shell echo`, `1:1: \shell is refused: a script cannot run programs`}, {`\setshell x echo`, `1:1: \setshell is refused: a script cannot run programs`},
	{`\nosuchcommand`, `1:1: unknown command \nosuchcommand; the commands are \set, \gset, \aset, \if, \elif, \else, \endif, \sleep, \startpipeline, \syncpipeline, \endpipeline`},
	{"SELECT 1\nFROM a WHERE b = :nowhere", `2:18: nothing sets the variable nowhere: use \set, \gset or --define, or write a space behind the colon`},
	{"SELECT :x;\n\\set x 1", "1:8: the variable x is used before it is set"}, {`\set x :x + 1`, "1:8: the variable x is used before it is set"},
	{"SELECT :x_a;\nSELECT 1 AS a \\gset x_", `1:8: nothing sets the variable x_a: use \set, \gset or --define, or write a space behind the colon`},
	{"SELECT ':scale'", "1:9: the parameter :scale is inside of quotes: close them before it, and join the texts by ||"},
	{"DO $do$ BEGIN x := :i; END $do$", "1:20: the parameter :i is inside of quotes: close them before it, and join the texts by ||"},
	{"SELECT 'abc", "1:8: the quote ' has no end"}, {`SELECT "abc`, `1:8: the quote " has no end`}, {"SELECT E'a\\'", "1:9: the quote ' has no end"},
	{"SELECT $a$ b $b$", "1:8: the quote $ has no end"}, {"SELECT 1 /* /* */", "1:10: the comment has no end"},
	{"SELECT (1;\nSELECT 2", "1:8: the parenthesis is not closed"}, {"SELECT :'i'", "1:8: psql's quoting of parameters is not possible: write a parameter as :name"},
	{"BEGIN; PREPARE TRANSACTION 'x'", "1:8: a transaction in two phases is not possible: write COMMIT or ROLLBACK"},
	{"\nCOMMIT AND CHAIN;", "2:1: AND CHAIN is not possible: write BEGIN as the next statement"},
}

func TestScriptsAreRefusedWithTheirPlace(t *testing.T) {
	for _, c := range refusals {
		_, err := script.Parse([]script.File{{Name: "t.sql", Text: c[0], Weight: 1}}, defined())
		var mistake *script.Error
		if !errors.As(err, &mistake) || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "t.sql:"), c[1]) {
			t.Errorf("%.60q: %v, want %s", c[0], err, c[1])
		}
	}
	for want, files := range map[string][]script.File{
		"no script has a weight above 0": {{Name: "t.sql", Text: "SELECT 1"}},
		"the weight of t.sql is below 0": {{Name: "t.sql", Text: "SELECT 1", Weight: -1}},
		`"a b" is no name of a variable: begin with a letter, and write letters, digits and _`: {{Name: "a b", Text: "SELECT 1", Weight: 1}},
	} {
		if _, err := script.Parse(files, map[string]script.Value{strings.ReplaceAll(files[0].Name, ".", "_"): {}}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestConditionsChooseOneBranch(t *testing.T) {
	text := `\if :a = 1
SELECT 1;
\elif :a = 2 \
  and true
  \if :n
    SELECT 'never';
  \else
    SELECT 2;
  \endif
\elif 1 / :a > 0
SELECT 3;
\else
SELECT 4;
\endif
SELECT 'end';
`
	text = strings.ReplaceAll(text, ":a", ":client_id")
	p := parse(t, text)
	slot, _ := p.Slot("client_id")
	for a, want := range map[int64]string{1: "SELECT 1", 2: "SELECT 2", -3: "SELECT 4", 3: "SELECT 4"} {
		m := p.NewMachine(1, 2)
		m.Vars[slot] = script.Value{Kind: script.Integer, Int: a}
		if got, err := run(p, m, 0); err != nil || !slices.Equal(got, []string{want, "SELECT 'end'"}) {
			t.Errorf("%d: %q, %v, want %q", a, got, err, want)
		}
	}
	m := p.NewMachine(1, 2)
	if _, err := run(p, m, 0); err == nil || err.Error() != "t.sql:10: division by zero" {
		t.Errorf("%v", err)
	}
	for condition, want := range map[string]int{"null": 0, "true": 1, "0.5": 1, "0": 0, "0.0": 0, "-1": 1, ":t": 1, ":f": 0} {
		p := parse(t, "\\if "+condition+"\nSELECT 1;\n\\endif\n")
		if got, err := run(p, p.NewMachine(1, 2), 0); err != nil || len(got) != want {
			t.Errorf(`\if %s: %q, %v`, condition, got, err)
		}
	}
	p = parse(t, "SELECT 1;\n\\if :word\n\\endif")
	if _, err := run(p, p.NewMachine(1, 2), 0); err == nil || err.Error() != `t.sql:2: the value "bla" of the variable word is no number, boolean or null` {
		t.Errorf("%v", err)
	}
}

// TestStatementsAreSplitLikePgbench has the texts that pgbench sends for a file, without the semicolon at the end.
func TestStatementsAreSplitLikePgbench(t *testing.T) {
	for text, want := range map[string][]string{
		"SELECT 1;SELECT 2": {"SELECT 1", "SELECT 2"},
		";;SELECT 1;;":      {"SELECT 1"},
		"-- one\n  SELECT 1 -- two\n;\n-- three\n":              {"SELECT 1 -- two"},
		"/*+ hint :i */ SELECT /* ; /* ' */ */ 1;":              {"/*+ hint :i */ SELECT /* ; /* ' */ */ 1"},
		"SELECT ';''--', \"a;\"\"b\", $$ ; $$, $x$;$$;$x$;":     {"SELECT ';''--', \"a;\"\"b\", $$ ; $$, $x$;$$;$x$"},
		`SELECT E'a\';''b', e'\\'; SELECT 'a\'`:                 {`SELECT E'a\';''b', e'\\'`, `SELECT 'a\'`},
		"SELECT a$b$c; SELECT 1 AS $1":                          {"SELECT a$b$c", "SELECT 1 AS $1"},
		"SELECT :i, :i::int, a[1:2], ':x'::text, '1::i', 12:30": {"SELECT +3, +3::int, a[1:2], ':x'::text, '1::i', 12:30"},
		"SELECT :scale:i, x:=1, :::i":                           {"SELECT 1+3, x:=1, :::i"},
		"SELECT (1; 2);":                                        {"SELECT (1; 2)"},
		"SELECT 1 \\set x 1\nSELECT :x;":                        {"SELECT 1", "SELECT 1"},
		"\\set x 2\r\nSELECT\r\n:x;\r\n":                        {"SELECT\r\n2"},
		"SELECT 1 \\; SELECT :i \\; ;":                          {"SELECT 1 ; SELECT +3"},
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; SELECT 3": {
			"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END", "SELECT 3"},
		"CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC SELECT 1; END": {"CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC SELECT 1; END"},
		"BEGIN; END;": {"BEGIN", "END"},
		"\\sleep 2ms\n\\sleep :scale\n\\sleep 100 US\n\\sleep :d ms\n\\SLEEP 0": {"sleep 2ms", "sleep 1s", "sleep 100µs", "sleep 1ms", "sleep 0s"},
	} {
		p := parse(t, text)
		if got, err := run(p, p.NewMachine(1, 2), 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestStatementsAreClassified(t *testing.T) {
	for text, want := range map[string]string{
		"begin isolation level serializable": "1 0", "START TRANSACTION": "1 0", "commit": "2 0", "END": "2 0", "commit and no chain": "2 0",
		"ROLLBACK": "3 0", "abort work": "3 0", "savepoint a": "4 0", "ROLLBACK WORK TO SAVEPOINT a": "5 0", "release a": "6 0",
		"SET x = 1": "7 0", "reset all": "7 0", "PREPARE p AS SELECT 1": "7 0", "create table t (a int)": "8 2", "VACUUM": "8 0",
		"SELECT 1": "0 0", "(SELECT 1)": "0 0", "VALUES (1)": "0 0", "TABLE t": "0 0", "show x": "0 0", "select a into t from b": "0 2",
		"SELECT a FROM t FOR UPDATE": "0 0", "WITH x AS (SELECT 1) SELECT * FROM x FOR NO KEY UPDATE": "0 0",
		"WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x": "0 2", "WITH x AS (SELECT 1) UPDATE t SET a = 1": "0 2",
		"/* a */ insert into t values ('SELECT')": "0 2", "UPDATE t SET a = 1": "0 2", "MERGE INTO t": "0 2", "DELETE FROM t": "0 2",
		"CALL p()": "0 1", "DO $$ $$": "0 1", "EXECUTE p": "0 1", "EXPLAIN DELETE FROM t": "0 0", "EXPLAIN ANALYZE DELETE FROM t": "0 2",
		"unheard of": "0 1", "EXPLAIN ANALYSE EXECUTE p": "0 1", "EXPLAIN ANALYZE SELECT 1": "0 0", "(1)": "0 1", "LOCK t": "0 0",
	} {
		s := parse(t, text).Scripts[0].Steps[0].SQL
		if got := fmt.Sprint(s.Control, s.Writes); got != want || s.Keyword == "" && text != "(1)" {
			t.Errorf("%s: %s %q, want %s", text, got, s.Keyword, want)
		}
	}
	s := parse(t, "SELECT 1; BEGIN \\; -- two\n UPDATE t SET a = :i \\; COMMIT \\aset p_\n").Scripts[0].Steps[1].SQL
	if s.Control != script.Several || s.Writes != script.Yes || s.Store != script.ASet || s.Prefix != "p_" || len(s.Joined) != 3 ||
		s.Joined[2].Control != script.Commit || len(s.Params) != 1 || len(s.Joined[1].Params) != 1 || s.Joined[1].Line != 2 {
		t.Errorf("%+v", s)
	}
}

func TestVariablesAreSharedByScripts(t *testing.T) {
	files := []script.File{{Name: "a", Text: "\\set x 1\nSELECT 2 AS y \\gset p_\n", Weight: 1}, {Name: "b", Text: "SELECT :x, :p_y;", Weight: 2}}
	p, err := script.Parse(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := p.NewMachine(1, 2)
	if _, err := run(p, m, 1); err == nil || err.Error() != "b:1: the variable x has no value yet: set it before this line in every case" {
		t.Errorf("%v", err)
	}
	if _, err := run(p, m, 0); err != nil {
		t.Fatal(err)
	}
	slot, ok := p.Slot("p_y")
	if !ok {
		t.Fatal("no slot")
	}
	gset := p.Scripts[0].Steps[1].SQL
	for column, want := range map[string]int{"y": slot, "other": -1} {
		if got, err := p.Column(gset, column); err != nil || got != want {
			t.Errorf("the column %s sets the slot %d, %v", column, got, err)
		}
	}
	if _, err := p.Column(gset, "?column?"); err == nil ||
		err.Error() != `a:2: the column "?column?" cannot name a variable: give it a name by AS` {
		t.Errorf("%v", err)
	}
	m.SetText(slot, []byte("007"), false)
	if got, err := run(p, m, 1); err != nil || got[0] != "SELECT 1, 007" {
		t.Errorf("%q, %v", got, err)
	}
	if _, ok := p.Slot("nothing"); ok {
		t.Error("a slot for a variable that no script has")
	}
}

func TestTextsHaveTheirTypeInExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"NULL": "null", "t": "boolean true", "Tru": "boolean true", "y": "boolean true", "yes": "boolean true", "on": "boolean true",
		"f": "boolean false", "N": "boolean false", "no": "boolean false", "of": "boolean false", "off": "boolean false",
		"007": "integer 7", "+3": "integer 3", " -3": "integer -3", "1e3": "double 1000", " .5": "double 0.5", "-54.21E-2": "double -0.5421",
		"": "", "o": "", "trueX": "", "+": "", "99999999999999999999": "", "1e999": "", "1e-999": "", "a": "", "1x": "", "nul": "", "3 ": "",
	} {
		v, ok := script.Typed([]byte(text))
		got := strings.TrimSpace(v.Kind.String() + " " + strings.TrimPrefix(string(v.Append(nil)), "NULL"))
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v, want %q", text, got, ok, want)
		}
	}
}

func TestRestoreRepeatsTheSameValues(t *testing.T) {
	p := parse(t, "\\set r debug(random(1, 1000000000))\n\\set g debug(random_gaussian(1, 1000000, 3))\nSELECT :foo;\n")
	m := p.NewMachine(7, 8)
	slot, _ := p.Slot("foo")
	m.SetText(slot, nil, true)
	if m.Vars[slot].Kind != script.Null {
		t.Errorf("a null column: %+v", m.Vars[slot])
	}
	m.SetText(slot, []byte("first"), false)
	m.Save()
	first, err := run(p, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.SetText(slot, []byte("other"), false)
	second, _ := run(p, m, 0)
	m.Restore()
	third, _ := run(p, m, 0)
	if slices.Equal(first, second) || !slices.Equal(first, third) || third[2] != "SELECT first" {
		t.Errorf("%q, %q, %q", first, second, third)
	}
	if same, _ := run(p, p.NewMachine(7, 8), 0); !slices.Equal(first[:2], same[:2]) {
		t.Errorf("the same seeds: %q, %q", first, same)
	}
	if other, _ := run(p, p.NewMachine(7, 9), 0); slices.Equal(first[:2], other[:2]) {
		t.Error("another seed draws the same values")
	}
}

// TestEvaluationAllocatesNothing covers all that happens in a transaction.
func TestEvaluationAllocatesNothing(t *testing.T) {
	tier.SkipUnderRace(t)
	tpcb, err := script.Builtin("tpcb-like")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{tpcb.Text, `\set a case when :i > 1 and :t then permute(hash(random_zipfian(1, 1000000, 1.1)), 1000000) else 0 end
\set b least(1, 2.5, random_gaussian(1, 10, 3), random_exponential(1, 10, 3), pow(:foo, 2)) / sqrt(2)
\set c debug(:n is null or not :f)
\if :a < 0
\elif :b
\sleep :i us
\endif
`}
	for _, text := range texts {
		p := parse(t, text)
		m := p.NewMachine(1, 2)
		slot, _ := p.Slot("foo")
		steps, buffer := p.Scripts[0].Steps, make([]byte, 0, 1000)
		if slot == 0 {
			slot, _ = p.Slot("aid")
		}
		allocations := testing.AllocsPerRun(100, func() {
			m.Save()
			for range 2 {
				for i := range steps {
					switch s := &steps[i]; s.Op {
					case script.Assign:
						if m.Vars[s.Slot], err = m.Eval(s.Expr); err != nil {
							t.Fatal(err)
						}
					case script.JumpUnless:
						if _, err = m.True(s.Expr); err != nil {
							t.Fatal(err)
						}
					case script.Sleep:
						if _, err = m.Duration(s); err != nil {
							t.Fatal(err)
						}
					case script.Execute:
						if err = m.Bound(s.SQL); err != nil {
							t.Fatal(err)
						}
						for _, slot := range s.SQL.Params {
							buffer = m.Vars[slot].Append(buffer[:0])
						}
					}
				}
				m.SetText(slot, []byte("12.5"), false)
				m.Restore()
			}
		})
		if allocations != 0 {
			t.Errorf("%v allocations in %.30q", allocations, text)
		}
	}
}

func TestBuiltinsAreNamedByTheirBeginning(t *testing.T) {
	for name, want := range map[string]string{"tpcb-like": "tpcb-like", "t": "tpcb-like", "si": "simple-update", "se": "select-only"} {
		f, err := script.Builtin(name)
		if err != nil || f.Name != want || f.Weight != 1 {
			t.Errorf("%s: %v, %v", name, f, err)
		}
		parse(t, f.Text)
	}
	for name, want := range map[string]string{
		"s":    `"s" may be simple-update or select-only: write more letters`,
		"":     `no built-in script is called "": write tpcb-like, simple-update or select-only`,
		"nope": `no built-in script is called "nope": write tpcb-like, simple-update or select-only`,
	} {
		if _, err := script.Builtin(name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestWeightFollowsTheName(t *testing.T) {
	for arg, want := range map[string]string{"a.sql": "a.sql 1", "a.sql@8": "a.sql 8", "a@b/c.sql@0": "a@b/c.sql 0"} {
		path, weight, err := script.WeightedFile(arg)
		if got := fmt.Sprint(path, " ", weight); err != nil || got != want {
			t.Errorf("%s: %s, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"a.sql@", "a.sql@one", "a.sql@-1", "a.sql@99999999999", "@3"} {
		if _, _, err := script.WeightedFile(arg); err == nil {
			t.Errorf("%s is accepted", arg)
		}
	}
}

func TestSleepIsBounded(t *testing.T) {
	p := parse(t, `\sleep :i s`)
	slot, _ := p.Slot("i")
	m := p.NewMachine(1, 2)
	for v, want := range map[float64]time.Duration{-5: 0, 2.9: 2 * time.Second} {
		m.Vars[slot] = script.Value{Kind: script.Double, Double: v}
		if d, err := m.Duration(&p.Scripts[0].Steps[0]); err != nil || d != want {
			t.Errorf("%v: %v, %v", v, d, err)
		}
	}
	m.Vars[slot] = script.Value{Kind: script.Double, Double: 1e300}
	if d, err := m.Duration(&p.Scripts[0].Steps[0]); err == nil {
		t.Errorf("1e300 s: %v", d)
	}
	m.Vars[slot] = script.Value{Kind: script.Boolean, Int: 1}
	if _, err := m.Duration(&p.Scripts[0].Steps[0]); err == nil || err.Error() != `t.sql:1: \sleep needs a number, not a boolean` {
		t.Errorf("%v", err)
	}
}

// FuzzParse checks that no text makes the parser panic, and that an accepted script runs without a panic.
func FuzzParse(f *testing.F) {
	for _, c := range values {
		f.Add(`\set x debug(` + c[0] + ")\n")
	}
	for _, c := range refusals {
		f.Add(c[0])
	}
	f.Add("\\if :i\nSELECT E'\\'' /* /* */ */ || $a$ : $a$, :i::int[1:2] \\gset p_\n\\elif 1\n\\sleep 1 us\n\\endif")
	f.Add("\\startpipeline\nBEGIN \\; COMMIT;\n\\syncpipeline\n\\endpipeline")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := script.Parse([]script.File{{Name: "t.sql", Text: text, Weight: 1}}, defined())
		if err != nil {
			var mistake *script.Error
			if !errors.As(err, &mistake) || mistake.Problem == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, name := range slices.Sorted(maps.Keys(defined())) {
			if slot, ok := p.Slot(name); !ok || p.Names[slot] != name {
				t.Fatalf("%s: slot %d", name, slot)
			}
		}
		m := p.NewMachine(1, 2)
		m.Save()
		_, first := run(p, m, 0)
		m.Restore()
		_, second := run(p, m, 0)
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("%v, %v", first, second)
		}
	})
}

// BenchmarkExpressions evaluates the four expressions of a transaction of pgbench.
func BenchmarkExpressions(b *testing.B) {
	tpcb, err := script.Builtin("tpcb-like")
	if err != nil {
		b.Fatal(err)
	}
	p := parse(b, tpcb.Text)
	m := p.NewMachine(1, 2)
	steps := p.Scripts[0].Steps[:4]
	b.ReportAllocs()
	for b.Loop() {
		m.Save()
		for i := range steps {
			if m.Vars[steps[i].Slot], err = m.Eval(steps[i].Expr); err != nil {
				b.Fatal(err)
			}
		}
	}
}
