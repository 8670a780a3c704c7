package report

// Cause is what lies behind an invalid verdict: one cause, who is responsible, and what to do.
type Cause struct {
	Kind    string `json:"kind"` // lost-writes, altered-writes, double-writes, ghost-writes, foreign-data, lost-updates, broken-order, wrong-values, wrong-sums or divergence
	Check   string `json:"check"`
	Finding string `json:"finding"`           // the kind of the check's finding
	Anomaly string `json:"anomaly,omitempty"` // the field's term
	Count   int    `json:"count"`
	Amount  *int64 `json:"amount,omitempty"` // by how much the sum of the objects is wrong, net, in the workload's units

	FromSeconds *float64 `json:"from_s"` // the first and the last violation, since the run's start; null: not known
	ToSeconds   *float64 `json:"to_s"`
	Fault       string   `json:"fault,omitempty"` // that was under way

	Culprit string `json:"culprit"` // database, configuration, application or undecided

	Text        string `json:"text"`
	CulpritText string `json:"culprit_text"`
	Cure        string `json:"cure"` // what to do
	Story       string `json:"story,omitempty"`

	Explains []Consequence `json:"explains"` // the other findings: those that the cause does not explain come first
}

// Consequence is a finding beside the cause.
type Consequence struct {
	Check     string `json:"check"`
	Kind      string `json:"kind"`
	Anomaly   string `json:"anomaly,omitempty"`
	Count     int    `json:"count"`
	Explained bool   `json:"explained"` // by the cause
	Text      string `json:"text"`
}

// Caveat is a setting in effect under which a database does not promise to keep what it acknowledged.
type Caveat struct {
	Setting string `json:"setting"`
	Quote   string `json:"quote"` // of the documentation
	Source  string `json:"source"`
	Cure    string `json:"cure"` // the setting to choose
}

// IsolationLevel is an isolation of a database and the level that it claims there.
type IsolationLevel struct {
	Isolation string `json:"isolation"`
	Level     string `json:"level"`
}
