package dbtest

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"stroppy/internal/workload"
	"stroppy/internal/workload/script"
)

// The scripts of a cell: a shop with stock and orders, whose tables are made by the load phase.
const (
	shopTables = `
CREATE TABLE shop_stock (item INTEGER PRIMARY KEY, stock INTEGER NOT NULL, price DECIMAL(10, 2) NOT NULL, note VARCHAR(40));
CREATE TABLE shop_order (item INTEGER NOT NULL, client INTEGER NOT NULL, part DOUBLE PRECISION, note VARCHAR(40));
INSERT INTO shop_stock VALUES (1, 100000, 1.50, 'why?'), (2, 100000, 2.25, 'it''s'), (3, 100000, 10, NULL);
`
	shopOrder = `
\set item random(1, 3)
\set part random_gaussian(1, 1000, 3) / 7.0
\set big :item > 2
BEGIN;
SELECT stock AS remaining, price, note FROM shop_stock WHERE item = :item \gset before_
UPDATE shop_stock SET stock = stock - 1 WHERE item = :item;
\if :big
  INSERT INTO shop_order VALUES (:item, :client_id, :part, :before_note);
\else
  INSERT INTO shop_order (item, client, part, note) VALUES (:item, :client_id, NULL, 'item?');
\endif
COMMIT;
`
	shopReport = `
SELECT count(*), sum(stock) FROM shop_stock;
SELECT item, note FROM shop_stock WHERE note = 'why?' \aset
`
)

// scriptCell runs a user's scripts as a command, with receipts.
func scriptCell(mode string, count int) cell {
	return cell{name: "script " + mode, run: func(t *testing.T, open opener) {
		_, address := open(t)
		dir := t.TempDir()
		for name, text := range map[string]string{"tables.sql": shopTables, "order.sql": shopOrder, "report.sql": shopReport} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, v, why := program(t, script.Name, "--db", address, "--count", strconv.Itoa(count), "--clients", "4", "--mode", mode,
			"--init", filepath.Join(dir, "tables.sql"), "-f", filepath.Join(dir, "order.sql@4"), "-f", filepath.Join(dir, "report.sql"))
		if code != 0 || v.Verdict != "valid" || v.status("durable") != "valid" {
			t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
		}
	}}
}

func scriptCells(count int) []cell {
	return []cell{scriptCell(workload.Interactive, count), scriptCell(workload.Pipelined, count)}
}
