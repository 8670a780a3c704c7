package run

import (
	"time"

	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/resource"
)

// meterEvery is the length of an interval of report.ResourcesFile.
const meterEvery = time.Second

// resourceUsage measures client and servers until the function that it returns is
// called, which puts the measurements into the result and report.ResourcesFile in place.
func (c *conductor) resourceUsage(start time.Time) func() error {
	var workers []int
	if c.o.Workers != nil {
		workers = c.o.Workers.PIDs()
	}
	groups, rest := c.groups(workers)
	meter := resource.New(time.Since(start), groups...)
	host := &hostWatch{meter: resource.NewHost(time.Since(start), groups[0].PIDs), elsewhere: c.o.Workers != nil && len(workers) == 0}
	var samples []resource.Sample
	sample := func() {
		now := time.Since(start)
		s := meter.Sample(now)
		host.sample(now, s.Groups, c.o.Servers)
		s.Groups = s.Groups[:rest]
		samples = append(samples, s)
	}
	endSampling := load.EachSecond(start, func(int) { sample() })
	return func() error {
		endSampling()
		sample()
		totals := meter.Totals()[:rest]
		c.host = host
		c.result.SampledRSS = totals[0].MaxRSS
		for _, t := range totals[1:] {
			s := report.Server{Name: t.Name}
			if t.Known {
				s.CPUSeconds, s.MaxRSSBytes, s.MaxStoredBytes = &t.CPU, &t.MaxRSS, t.MaxStored
			}
			if t.Traffic != nil {
				s.ReceivedBytes, s.SentBytes = &t.Traffic.Received, &t.Traffic.Sent
			}
			c.result.Servers = append(c.result.Servers, s)
		}
		return writeRows(c.o.Dir, report.ResourcesFile, resources(samples))
	}
}

// resources turns samples into rows: by the second in which an interval ended.
func resources(samples []resource.Sample) []report.Resource {
	spread(samples)
	rows := make([]report.Resource, 0, len(samples))
	for _, s := range samples {
		took := (s.To - s.From).Seconds()
		if took < meterEvery.Seconds()/2 {
			continue // the rest at the end, too short for the ticks that time is counted in
		}
		row := report.Resource{Second: int((s.To - meterEvery/2) / time.Second)}
		row.ClientCPU, row.ClientRSS = sum(s.Groups[:1], took)
		row.ServersCPU, row.ServersRSS = sum(s.Groups[1:], took)
		traffic(&row, s.Groups[1:])
		rows = append(rows, row)
	}
	return rows
}

// spread gives each interval that a reading covers its share: ten seconds have their mean. The reading is drawn when
// it came, a little after the time that it describes.
func spread(samples []resource.Sample) {
	for i := range samples {
		for g, u := range samples[i].Groups {
			if u.Over <= 0 {
				continue
			}
			for j, left := i, u.Over; j >= 0 && left > 0 && (j == i || !samples[j].Groups[g].Known); j-- {
				took := samples[j].To - samples[j].From
				samples[j].Groups[g] = resource.Usage{Known: true, CPU: u.CPU * took.Seconds() / u.Over.Seconds(), RSS: u.RSS, Traffic: u.Traffic, Stored: u.Stored}
				left -= took
			}
		}
	}
}

// sum adds up groups; nothing is known unless one of them is.
func sum(groups []resource.Usage, took float64) (cpu *float64, rss *int64) {
	for _, g := range groups {
		if !g.Known {
			continue
		}
		if cpu == nil {
			cpu, rss = new(float64), new(int64)
		}
		*cpu += g.CPU / took
		*rss += g.RSS
	}
	return cpu, rss
}

// traffic adds up the received, sent and stored bytes of groups. The sums are known if one of them is.
func traffic(row *report.Resource, groups []resource.Usage) {
	add := func(to **int64, n int64) {
		if *to == nil {
			*to = new(int64)
		}
		**to += n
	}
	for _, g := range groups {
		if g.Traffic != nil {
			add(&row.ServersReceived, int64(g.Traffic.Received))
			add(&row.ServersSent, int64(g.Traffic.Sent))
		}
		if g.Stored != nil {
			add(&row.ServersStored, *g.Stored)
		}
	}
}
