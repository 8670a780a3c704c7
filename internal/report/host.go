package report

import "fmt"

// hostTables show what the clients' machine did during the load phase; none if it was not sampled.
func hostTables(r *Result) []PageTable {
	h := r.Host
	if h == nil {
		return nil
	}
	t := NewPageTable("The machine of the clients", fmt.Sprintf("Means over %s of the load phase, from one sample a second;"+
		" the load average is the largest.", seconds(h.Seconds)), []int{0}, "", "value")
	of := func(x float64) string { return fmt.Sprintf("%.2f of %d", x, h.Processors) }
	two := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	others := "processors busy with processes outside the run"
	if h.ServersUnknown {
		others = "processors busy with others than the client, the servers among them"
	}
	t.Add("processors busy", Perhaps(h.BusyProcessors, of))
	t.Add(others, Perhaps(h.OtherProcessors, of))
	t.Add("load average of a minute", Perhaps(h.LoadAverage, two))
	t.Add("tasks that ran or could have run", Perhaps(h.RunQueue, two))
	t.Add("time in which a task waited for a processor", Perhaps(h.CPUPressure, percent))
	if h.GroupPressure != nil {
		t.Add("the same in the client's control group", percent(*h.GroupPressure))
	}
	t.Add("processor time stolen by the hypervisor", Perhaps(h.Steal, percent))
	if h.Throttled != nil {
		t.Add("periods in which a CPU limit stopped the client", percent(*h.Throttled))
	}
	if r.Client != nil {
		t.Add("the client's threads waited for a processor", Perhaps(r.Client.RunDelaySeconds, seconds))
	}
	t.Add("time in which the host was starved", seconds(h.StarvedSeconds))
	return []PageTable{t}
}
