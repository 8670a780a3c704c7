package mysql

import (
	"regexp"

	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"mysql"}, Port: "3306", Bindable: true,
	Also:    []string{"mariadb", "percona", "tidb", "mysqli"},
	Foreign: regexp.MustCompile(`(?i)^jdbc:(mysql|mariadb):|^.*@(tcp|unix)?[46]?\(.*\)/`),
	About:   "mysql://USER:PASSWORD@HOST:PORT/DATABASE  MySQL, MariaDB and Galera; several hosts with commas",
	Alone:   db.Parameter("", ""),
	Open:    db.Opener(Open), Check: CheckURL, Isolations: Isolations,
}
