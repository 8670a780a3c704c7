package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

var _ db.Surveyed = (*Database)(nil)

// judged lists variables with the values that matter for a run. A server has some of them.
var judged = []struct {
	name     string
	bad      func(value string) bool
	severity db.Severity
	advice   string
}{
	{"innodb_doublewrite", off, db.Warning, "a crash of the machine can leave half-written pages; set it to ON"},
	{"innodb_force_recovery", above0, db.Warning, "the server runs in recovery and may refuse writes; set it to 0"},
	{"read_only", on, db.Warning, "a run writes; name the server that takes writes"},
	{"super_read_only", on, db.Warning, "a run writes; name the server that takes writes"},
	{"max_statement_time", above0, db.Note, "the server cancels longer statements, for example of a load; set it to 0"},
	{"max_execution_time", above0, db.Note, "the server cancels longer reads, for example of a check; set it to 0"},
	{"wait_timeout", short, db.Note, "the server ends idle sessions, as between the transactions of a low --rate; raise it"},
	{"net_read_timeout", nil, "", ""},
	{"lock_wait_timeout", nil, "", ""},
	{"max_user_connections", nil, "", ""},
	{"local_infile", off, db.Note, "loads use INSERT, which is slower than LOAD DATA; set it to ON"},
}

func on(value string) bool     { return strings.EqualFold(value, "ON") || value == "1" }
func off(value string) bool    { return strings.EqualFold(value, "OFF") || value == "0" }
func above0(value string) bool { return number(value) > 0 }
func short(value string) bool  { return number(value) < 60 }

// number returns the number of a variable; 0 if it has none.
func number(value string) float64 {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0
	}
	return n
}

// Survey implements db.Surveyed.
func (d *Database) Survey(ctx context.Context, info db.Info) (s db.Survey, err error) {
	err = d.control(ctx, d.op("ask for its state"), func(_ context.Context, c *link) error {
		s.Clock, err = db.ReadClock(func() (time.Time, error) {
			row, err := c.row("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
			if err != nil {
				return time.Time{}, err
			}
			micros, err := strconv.ParseInt(row[0], 10, 64)
			return time.UnixMicro(micros), err
		})
		if err != nil {
			return err
		}
		status, err := c.pairs("SHOW SESSION STATUS WHERE Variable_name IN ('" + strings.Join(surveyedStatus, "', '") + "')")
		if err != nil {
			return err
		}
		host := d.address.hosts[c.host]
		own := host.TLS != nil && (!host.TLS.InsecureSkipVerify || host.TLS.VerifyConnection != nil)
		encryption := wire.Encryption{Verified: own || host.TLSConfig == "true"}
		if cipher := status["ssl_cipher"]; cipher != "" {
			encryption.Protocol = status["ssl_version"] + ", " + cipher
		}
		encryption.Judge(&s, wire.Elsewhere(host.Addr), "ssl-mode=VERIFY_IDENTITY to the URL")
		if err := c.surveyVariables(&s, &info); err != nil {
			return err
		}
		if err := c.surveyReplication(&s, &info, status); err != nil {
			return err
		}
		return c.surveyRights(&s)
	})
	return s, err
}

// surveyedStatus lists status variables about the session and about replicas that acknowledge commits.
var surveyedStatus = []string{"Ssl_version", "Ssl_cipher", "Rpl_semi_sync_master_clients", "Rpl_semi_sync_source_clients"}

func (l *link) surveyVariables(s *db.Survey, info *db.Info) error {
	var names []string
	for _, v := range judged {
		names = append(names, v.name)
	}
	values, err := l.pairs("SHOW VARIABLES WHERE Variable_name IN ('" + strings.Join(names, "', '") + "')")
	if err != nil {
		return err
	}
	for _, v := range judged {
		if v.severity == "" {
			s.Add(v.name, "%s", values[v.name])
		} else {
			s.Judge(v.name, values[v.name], v.bad(values[v.name]), v.severity, v.advice)
		}
	}
	if on(info.Setting("log_bin")) {
		sync := info.Setting("sync_binlog")
		s.Judge("sync_binlog", sync, sync != "1", db.Warning, "a crash can lose events of acknowledged transactions from the binary log, so that replicas lack them; set it to 1")
	}
	return nil
}

// surveyReplication adds the role of the server and the number of its replicas. The statement for a replica's state is
// of MySQL 8.0.22 and MariaDB 10.5; earlier servers have only the second form.
func (l *link) surveyReplication(s *db.Survey, info *db.Info, status map[string]string) error {
	source, err := l.record("SHOW REPLICA STATUS")
	if refused(err) {
		source, err = l.record("SHOW SLAVE STATUS")
	}
	switch {
	case refused(err):
		s.Judge("role", "not known", true, db.Note, "this user may not see it; grant REPLICATION CLIENT (MariaDB: SLAVE MONITOR)")
	case err != nil:
		return err
	case source != nil:
		value := "replica of " + source["source_host"] + source["master_host"]
		if behind := source["seconds_behind_source"] + source["seconds_behind_master"]; behind != "" {
			value += ", " + behind + " s behind"
		}
		s.Judge("role", value, true, db.Warning, "what is written here is not on its source; name the source")
	default:
		s.Judge("role", "takes writes, no replica of another server", false, "", "")
	}
	row, err := l.row("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'") // that this user may see
	if err != nil {
		return err
	}
	waits := on(info.Setting("rpl_semi_sync_master_enabled")) || on(info.Setting("rpl_semi_sync_source_enabled"))
	if waits {
		clients := status["rpl_semi_sync_master_clients"] + status["rpl_semi_sync_source_clients"]
		s.Judge("replicas that acknowledge commits", clients, clients == "0", db.Warning, "commits wait until the time-out and then go on without a replica; connect one with semi-synchronous replication")
	}
	s.Judge("replicas seen", row[0], row[0] != "0" && !waits, db.Warning,
		"replication is asynchronous, so a fail-over can lose acknowledged transactions; use semi-synchronous replication")
	return nil
}

// refused reports whether the server answered with an error.
func refused(err error) bool {
	_, ok := errors.AsType[*client.MySQLError](err)
	return ok
}

// record runs a query and returns its first row by the names of its columns, in lower case; nil: there is no row.
func (l *link) record(text string) (map[string]string, error) {
	rows, err := l.query(text)
	if err != nil {
		return nil, err
	}
	names := rows.Columns()
	if err := rows.Close(); err != nil {
		return nil, err
	}
	table, err := l.table(text)
	if err != nil || len(table) == 0 {
		return nil, err
	}
	record := map[string]string{}
	for i, name := range names {
		record[strings.ToLower(name)] = table[0][i]
	}
	return record, nil
}

// rights lists the privileges that loads and runs use.
var rights = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER"}

// granted matches a line of SHOW GRANTS up to its object. A role's line has no object.
func granted(line string) (privileges, object string, ok bool) {
	line, ok = strings.CutPrefix(line, "GRANT ")
	if !ok {
		return "", "", false
	}
	privileges, line, ok = strings.Cut(line, " ON ")
	object, _, _ = strings.Cut(line, " TO ")
	return privileges, object, ok
}

// surveyRights adds the rights in the database of the URL. Roles may give more than their lines say, so with a role
// nothing is missing for certain.
func (l *link) surveyRights(s *db.Survey) error {
	row, err := l.row("SELECT DATABASE(), CURRENT_USER()")
	if err != nil {
		return err
	}
	database, user := row[0], row[1]
	s.Add("user", "%s", user)
	lines, err := l.table("SHOW GRANTS")
	if err != nil {
		return err
	}
	missing, roles := slices.Clone(rights), false
	for _, line := range lines {
		privileges, object, ok := granted(line[0])
		roles = roles || !ok
		if !ok || !covers(object, database) {
			continue
		}
		has := strings.Split(privileges, ", ")
		missing = slices.DeleteFunc(missing, func(right string) bool { return slices.Contains(has, right) || slices.Contains(has, "ALL PRIVILEGES") })
	}
	if roles && len(missing) > 0 {
		s.Add("rights", "not known: this user has roles")
		return nil
	}
	name, host, _ := strings.Cut(user, "@")
	list := strings.Join(missing, ", ")
	value := "all that a run needs"
	if len(missing) > 0 {
		value = "missing: " + list
	}
	s.Judge("rights", value, len(missing) > 0, db.Warning,
		fmt.Sprintf("a run creates, changes and drops its tables; an administrator runs GRANT %s ON `%s`.* TO '%s'@'%s'", list, database, name, host))
	return nil
}

// covers reports whether a privilege on an object of SHOW GRANTS, such as `shop\_%`.*, holds in a database.
func covers(object, database string) bool {
	pattern, ok := strings.CutSuffix(object, ".*")
	if !ok {
		return false
	}
	pattern = strings.ReplaceAll(strings.Trim(pattern, "`"), `\`, "")
	prefix, rest, wild := strings.Cut(pattern, "%")
	return pattern == "*" || pattern == database || wild && rest == "" && strings.HasPrefix(database, prefix)
}
