package redis

import (
	"net/url"

	"stroppy/internal/db"
)

// Driver describes this database for the registry.
var Driver = db.Driver{
	Schemes: []string{"redis", "rediss", socketScheme}, Port: "6379", Bindable: true,
	Also: []string{"valkey"},
	About: "redis://[USER:PASSWORD@]HOST:PORT,HOST:PORT/DB[?commit=script|watch&wait=N&sentinel=NAME]  " +
		"Redis 7 or later; a primary and its replicas with commas, or their Sentinels",
	Alone: alone, Primary: db.Parameter("", ""),
	Open: db.Opener(Open), Check: CheckURL, Isolations: Isolations, KeyValue: new(Database),
}

// alone changes the parameters of a URL so that one server is read. It returns false if the URL names Sentinels, which
// hold no data.
func alone(query url.Values) bool {
	for _, name := range []string{"wait", "wait_timeout", "commit"} {
		query.Del(name)
	}
	query.Set("read", "any")
	return !query.Has("sentinel")
}
