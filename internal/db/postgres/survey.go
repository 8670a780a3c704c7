package postgres

import (
	"context"
	"fmt"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

var _ db.Surveyed = (*Database)(nil)

// judged lists settings with the values that matter for a run. A missing value means that the server lacks the setting.
var judged = []struct {
	name     string
	bad      func(value string) bool
	severity db.Severity
	advice   string
}{
	{"full_page_writes", is("off"), db.Warning, "a crash of the machine can leave half-written pages; set it to on"},
	{"default_transaction_read_only", is("on"), db.Warning, "a run writes; set it to off for this role"},
	{"statement_timeout", limits, db.Note, "the server cancels longer statements, for example of a load; set it to 0 for this role"},
	{"lock_timeout", limits, db.Note, "longer waits for a row lock fail and are tried again; set it to 0 for this role"},
	{"transaction_timeout", limits, db.Note, "the server ends sessions with a longer transaction; set it to 0 for this role"},
	{"idle_in_transaction_session_timeout", nil, "", ""},
	{"idle_session_timeout", limits, db.Note, "the server ends idle sessions, as between the transactions of a low --rate; set it to 0 for this role"},
	{"superuser_reserved_connections", nil, "", ""},
	{"reserved_connections", nil, "", ""},
}

func is(bad string) func(string) bool { return func(value string) bool { return value == bad } }

func limits(value string) bool { return value != "0" }

// Survey implements db.Surveyed.
func (d *Database) Survey(ctx context.Context, info db.Info) (db.Survey, error) {
	return d.SurveyWith(ctx, func(ctx context.Context, c *pgwire.Control, s *db.Survey) error {
		for _, part := range []func(context.Context, *pgwire.Control, *db.Survey, *db.Info) error{surveySettings, surveyReplication, surveyRights} {
			if err := part(ctx, c, s, &info); err != nil {
				return err
			}
		}
		if pooler := info.Setting("pooler"); pooler != "" {
			const statements, whole = "pool_mode statement", "statements are sent whole each time, which costs time; add prepare=true to the URL if PgBouncer has max_prepared_statements"
			s.Judge("pooler", pooler, !d.Prepares(), db.Note, whole)
			if strings.Contains(pooler, statements) {
				s.Judge("pooler", pooler, true, db.Warning, "a run needs transactions; set pool_mode to transaction")
			}
		}
		return nil
	})
}

func surveySettings(ctx context.Context, c *pgwire.Control, s *db.Survey, info *db.Info) error {
	var columns []string
	for _, setting := range judged {
		columns = append(columns, "current_setting('"+setting.name+"', true)")
	}
	row, err := c.Row(ctx, "SELECT "+strings.Join(columns, ", "))
	if err != nil {
		return err
	}
	for i, setting := range judged {
		if setting.severity == "" {
			s.Add(setting.name, "%s", row[i])
		} else {
			s.Judge(setting.name, row[i], setting.bad(row[i]), setting.severity, setting.advice)
		}
	}
	if commit := info.Setting("synchronous_commit"); info.Setting("synchronous_standby_names") != "" {
		s.Judge("synchronous_commit", commit, commit == "local" || commit == "remote_write", db.Warning,
			"a fail-over can lose acknowledged transactions; set it to on")
	}
	return nil
}

// replicationQuery asks for the role, the delay of a standby in seconds, and the standbys of a primary. A user without
// pg_read_all_stats does not see their state.
const replicationQuery = `SELECT pg_is_in_recovery(), coalesce(round(extract(epoch FROM now() - pg_last_xact_replay_timestamp()))::text, ''),
	(SELECT count(*) FROM pg_stat_replication),
	(SELECT coalesce(string_agg(concat_ws(' ', application_name, state, sync_state,
		CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) || ' bytes behind' END), ', '), '') FROM pg_stat_replication)`

func surveyReplication(ctx context.Context, c *pgwire.Control, s *db.Survey, info *db.Info) error {
	row, err := c.Row(ctx, replicationQuery)
	if pgwire.Refused(err) {
		s.Add("role", "not known: the server refuses the question")
		return nil
	}
	if err != nil {
		return err
	}
	if row[0] == "t" {
		value := "standby"
		if row[1] != "" {
			value += ", last replayed transaction " + row[1] + " s ago"
		}
		s.Judge("role", value, true, db.Warning, "a run writes, which a standby refuses; name the primary, or all servers with target_session_attrs=read-write")
		return nil
	}
	s.Judge("role", "primary", false, "", "")
	names := info.Setting("synchronous_standby_names")
	commit := info.Setting("synchronous_commit")
	switch waits := names != "" && commit != "off" && commit != "local"; {
	case row[2] == "0":
		s.Judge("standbys", "none", waits, db.Warning, "commits wait for the standbys in synchronous_standby_names; start one, or empty the setting")
	default:
		s.Judge("standbys", row[2]+": "+row[3], names == "", db.Warning,
			"replication is asynchronous, so a fail-over can lose acknowledged transactions; set synchronous_standby_names")
	}
	return nil
}

// rightsQuery asks for the user, the schema of new tables and the rights there. Names are quoted for a statement.
const rightsQuery = `SELECT quote_ident(current_user), (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
	coalesce(quote_ident(current_schema()), ''), coalesce(has_schema_privilege(current_schema(), 'CREATE')::text, ''), current_setting('search_path')`

func surveyRights(ctx context.Context, c *pgwire.Control, s *db.Survey, _ *db.Info) error {
	row, err := c.Row(ctx, rightsQuery)
	if err != nil {
		return err
	}
	user, super, schema, create, path := row[0], row[1] == "t", row[2], row[3], row[4]
	if super {
		s.Add("user", "%s, a superuser", user)
	} else {
		s.Add("user", "%s", user)
	}
	s.Add("search_path", "%s", path)
	if schema == "" {
		s.Judge("schema", "none", true, db.Warning, "search_path names no schema that exists and this user may use; create one, or add search_path=NAME to the URL")
		return nil
	}
	s.Add("schema", "%s", schema)
	s.Judge("right to create tables", map[string]string{"true": "yes", "false": "no"}[create], create == "false", db.Warning,
		fmt.Sprintf("a run creates its tables; run GRANT CREATE ON SCHEMA %s TO %s, or add search_path=NAME of another schema to the URL", schema, user))
	return nil
}
