package script

import "slices"

// Control is the effect of a statement on transactions.
type Control uint8

// The kinds of transaction control.
const (
	None Control = iota
	Begin
	Commit
	Rollback
	Savepoint
	RollbackTo
	Release
	Setting    // SET and other changes of the session
	Definition // of tables and other objects, and their maintenance; some databases commit it at once
	Several    // a statement of Joined controls transactions
)

// Writes is the answer to the question if a statement changes data.
type Writes uint8

// A statement with No may still call a function that writes, because its text does not show it.
const (
	No Writes = iota
	Unknown
	Yes
)

type class struct {
	control Control
	writes  Writes
}

func classOf(word string) class {
	switch word {
	case "BEGIN":
		return class{control: Begin}
	case "COMMIT", "END":
		return class{control: Commit}
	case "ROLLBACK", "ABORT":
		return class{control: Rollback}
	case "SAVEPOINT":
		return class{control: Savepoint}
	case "RELEASE":
		return class{control: Release}
	case "SET", "RESET", "DISCARD", "LISTEN", "UNLISTEN", "PREPARE", "DEALLOCATE", "USE", "PRAGMA":
		return class{control: Setting}
	case "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE", "COMMENT", "RENAME", "REFRESH", "REASSIGN":
		return class{Definition, Yes}
	case "VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "OPTIMIZE", "CHECKPOINT":
		return class{control: Definition}
	case "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "UPSERT", "COPY", "LOAD", "IMPORT":
		return class{writes: Yes}
	case "SELECT", "VALUES", "TABLE", "SHOW", "WITH", "EXPLAIN", "DESCRIBE", "DESC",
		"LOCK", "DECLARE", "FETCH", "MOVE", "CLOSE", "NOTIFY":
		return class{}
	}
	return class{writes: Unknown}
}

// classify returns what a statement of these words does. A problem refuses the statement.
func classify(words []string) (Control, Writes, string) {
	if len(words) == 0 {
		return None, Unknown, ""
	}
	has := func(word string) bool { return slices.Contains(words, word) }
	c := classOf(words[0])
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch {
	case words[0] == "START" && second == "TRANSACTION":
		c = class{control: Begin}
	case words[0] == "PREPARE" && second == "TRANSACTION", words[0] == "XA",
		(c.control == Commit || c.control == Rollback) && second == "PREPARED":
		return None, Unknown, "a transaction in two phases is not possible: write COMMIT or ROLLBACK"
	case (c.control == Commit || c.control == Rollback) && has("CHAIN") && !has("NO"):
		return None, Unknown, "AND CHAIN is not possible: write BEGIN as the next statement"
	case c.control == Rollback && has("TO"):
		c.control = RollbackTo
	case words[0] == "WITH", words[0] == "EXPLAIN" && (has("ANALYZE") || has("ANALYSE")), words[0] == "SELECT":
		c.writes = writesInside(words)
	}
	return c.control, c.writes, ""
}

// writesInside searches for a statement that writes inside of another one.
func writesInside(words []string) Writes {
	for i, word := range words {
		switch word {
		case "INSERT", "DELETE", "MERGE":
			if words[0] != "SELECT" {
				return Yes
			}
		case "UPDATE":
			if words[0] != "SELECT" && words[i-1] != "FOR" && words[i-1] != "KEY" {
				return Yes
			}
		case "INTO":
			return Yes
		case "EXECUTE", "CALL":
			if words[0] == "EXPLAIN" {
				return Unknown
			}
		}
	}
	return No
}
