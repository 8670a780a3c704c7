package cockroach

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

var _ db.Surveyed = (*Database)(nil)

// Survey implements db.Surveyed. Facts that this server or user does not have are left out.
func (d *Database) Survey(ctx context.Context, info db.Info) (db.Survey, error) {
	return d.SurveyWith(ctx, func(ctx context.Context, c *pgwire.Control, s *db.Survey) error {
		timeout := info.Setting("statement_timeout")
		s.Judge("statement_timeout", timeout, timeout != "0" && timeout != "0s", db.Note, "the server cancels longer statements, for example of a load; set it to 0")
		const create = "right to create tables"
		facts := []struct{ name, query string }{
			{"user", "SELECT current_user"},
			{"nodes", "SELECT count(*) FROM crdb_internal.gossip_nodes"},
			{"idle_in_transaction_session_timeout", "SHOW idle_in_transaction_session_timeout"},
			{create, "SELECT CASE WHEN has_database_privilege(current_database(), 'CREATE') OR has_schema_privilege(current_schema(), 'CREATE') THEN 'yes' ELSE 'no' END"},
		}
		for _, fact := range facts {
			row, err := c.Row(ctx, fact.query)
			switch {
			case err != nil && c.Conn.IsClosed():
				return err
			case err != nil: // this version or user does not have it
			case fact.name != create:
				s.Add(fact.name, "%s", row[0])
			default:
				s.Judge(create, row[0], row[0] == "no", db.Warning, "a run creates its tables; run GRANT CREATE ON DATABASE for this user")
			}
		}
		return nil
	})
}
