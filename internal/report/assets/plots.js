"use strict";
// The charts that only a run's page has beside those of charts.js: the time around each
// fault, kinds of transactions, the heat map of latency, and the percentiles.
(() => {
	const charts = window.stroppy.charts;
	const { el, chart } = window.stroppy.parts, kinds = window.stroppy.kinds;
	const { color, digits, group, overTime, ofTime } = charts;
	const colors = ["blue", "red", "green", "purple", "amber", "grey"], dashes = [undefined, [6, 3], [2, 2]];
	const show = { kinds: false, kind: "", fault: null, sent: false, log: false }; // what a reader has chosen

	const heading = (title, kind) => kind ? title.replace(",", ` (${kind}),`) : title;

	// ofTimeline lists the charts over time of a run.
	function ofTimeline(data) {
		const specs = charts.ofTimeline(data.timeline), k = data.kinds;
		const put = (name, spec) => specs.splice(specs.findIndex((s) => s.name === name), 1, spec);
		const after = (name, spec) => specs.splice(specs.findIndex((s) => s.name === name) + 1, 0, spec);
		const time = k && Object.assign({}, data.timeline, { at_s: k.at_s, bin_s: k.bin_s });
		if (k && show.kinds) put("throughput", overTime(time, {
			name: "throughput", title: "Throughput, transactions per second", named: true, shape: "kinds", describe: "Committed transactions per second by kind over the time of the run",
			lines: k.lines.map((l, i) => ({ label: l.name, column: l.columns.tps, color: colors[i % colors.length], more: () => ({ dash: dashes[Math.floor(i / colors.length) % dashes.length] }) })),
		}));
		const of = k && k.lines.find((l) => l.name === show.kind);
		if (of) put("latency", overTime(time, {
			name: "latency", title: "Latency of committed transactions, ms", log: true, named: true, height: 280, shape: of.name, describe: `Latency of ${of.name} over the time of the run on a logarithmic scale`,
			lines: [
				{ label: "max", column: of.columns.max_ms, color: "grey", more: () => ({ width: 1 }) },
				{ label: "99.9 %", column: of.columns.p999_ms, color: "amber" }, { label: "99 %", column: of.columns.p99_ms, color: "red" },
				{ label: "90 %", column: of.columns.p90_ms, color: "green" }, { label: "50 %", column: of.columns.p50_ms, color: "blue", more: () => ({ width: 2 }) },
			],
		}));
		if (data.acknowledged) after("throughput", acknowledged(data.timeline, data.acknowledged));
		if (data.around) after("throughput", around(data.timeline, data.around));
		if (data.heat) after("latency", heat(data.timeline, data.heat));
		return specs;
	}

	// around is the throughput around one fault, in steps that an outage of half a second
	// takes to zero.
	function around(timeline, a) {
		const f = a.faults[show.fault ?? a.first], step = a.step_s, end = f.from_s + f.committed.length * step;
		const at = f.committed.map((n, i) => f.from_s + i * step), rate = f.committed.map((n) => n / step);
		at.push(end);
		rate.push(rate[rate.length - 1]);
		return overTime(Object.assign({}, timeline, { at_s: at, bin_s: step, low: null, high: null }), {
			name: "around", title: `Around fault ${f.number}, per second in steps of ${digits(step * 1000)} ms`, named: true, height: 190, shape: f.number, from: f.from_s, to: end,
			describe: "Committed transactions in small steps around one fault",
			span: (v) => `${(Math.round(v / step) * step).toFixed(1)} to ${(Math.round(v / step + 1) * step).toFixed(1)} s`,
			lines: [{ label: "committed", column: rate, color: "blue", write: group, more: () => ({ fill: color("fill"), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }) }],
		});
	}

	// acknowledged shows which node acknowledged writes when: a row for each node.
	function acknowledged(timeline, a) {
		const nodes = [...new Set(a.intervals.map((i) => i.server))], rows = nodes.length, row = (node) => rows - 1 - node;
		const paint = (u) => {
			const c = u.ctx, b = u.bbox, px = devicePixelRatio, low = u.scales.x.min, high = u.scales.x.max;
			const box = (from, to, bottom, top) => {
				const left = Math.round(u.valToPos(Math.max(from, low), "x", true)), right = Math.round(u.valToPos(Math.min(to, high), "x", true));
				const y = Math.round(u.valToPos(top, "y", true));
				if (from <= high && to >= low) c.fillRect(left, y, Math.max(right - left, 2 * px), Math.round(u.valToPos(bottom, "y", true)) - y);
			};
			c.save();
			c.beginPath(); c.rect(b.left, b.top, b.width, b.height); c.clip();
			c.fillStyle = color("invalid");
			c.globalAlpha = .18;
			for (const both of a.overlaps) box(both.from_s, both.to_s, 0, rows);
			c.globalAlpha = 1;
			for (const i of a.intervals) {
				const node = nodes.indexOf(i.server);
				c.fillStyle = color(colors[node % colors.length]);
				box(i.from_s, i.to_s, row(node) + .3, row(node) + .7);
				if (i.lost_from_s === null) continue;
				c.fillStyle = color("invalid");
				box(i.lost_from_s, i.to_s, row(node) + .14, row(node) + .22);
			}
			c.restore();
		};
		const at = (node, t) => a.intervals.find((i) => i.server === nodes[node] && t + .5 * timeline.bin_s >= i.from_s && t - .5 * timeline.bin_s <= i.to_s);
		const spec = overTime(timeline, {
			name: "acknowledged", title: "Writes acknowledged by node", named: true, height: 70 + 34 * rows, paint, shape: [a.intervals, a.overlaps],
			describe: "Which node acknowledged writes over the time of the run",
			lines: nodes.map((name, node) => ({ label: name, color: colors[node % colors.length], column: timeline.at_s.map((t) => at(node, t) ? row(node) + .5 : null) })),
		});
		const options = spec.options;
		spec.options = () => {
			const o = options();
			o.scales.y = { range: () => [0, rows] };
			o.axes[1] = Object.assign(charts.scaleAxis(false, digits), { splits: () => nodes.map((_, i) => row(i) + .5), values: () => nodes, grid: { show: false } });
			o.series.slice(1).forEach((s, node) => Object.assign(s, {
				paths: () => null, points: { show: false },
				value: (u, v, i, n) => { if (n === null || n === undefined) return ""; const x = at(node, timeline.at_s[n]); return x ? group(x.acknowledged) + (x.lost > 0 ? `, of which ${group(x.lost)} lost` : "") : "none"; },
			}));
			return o;
		};
		return spec;
	}

	// heat shows how many transactions took how long: the darker, the more, on a log scale.
	function heat(timeline, h) {
		const edges = h.edges_ms, most = Math.log1p(h.cells.reduce((m, c) => c.reduce((n, x) => Math.max(n, x), m), 0));
		const paint = (u) => {
			const c = u.ctx, b = u.bbox, half = h.bin_s / 2;
			const y = edges.map((e) => Math.round(u.valToPos(e, "y", true)));
			c.save();
			c.beginPath(); c.rect(b.left, b.top, b.width, b.height); c.clip();
			c.fillStyle = color("blue");
			h.cells.forEach((cells, i) => {
				if (cells.length === 0 || h.at_s[i] + half < u.scales.x.min || h.at_s[i] - half > u.scales.x.max) return;
				const left = Math.round(u.valToPos(h.at_s[i] - half, "x", true)), right = Math.max(left + 1, Math.round(u.valToPos(h.at_s[i] + half, "x", true)));
				cells.forEach((n, k) => {
					if (!(n > 0)) return;
					c.globalAlpha = .1 + .9 * Math.log1p(n) / most;
					c.fillRect(left, y[k + 1], right - left, y[k] - y[k + 1]);
				});
			});
			c.restore();
		};
		return overTime(Object.assign({}, timeline, { at_s: h.at_s, bin_s: h.bin_s, low: null, high: null }), {
			name: "heat", title: "Latency of each committed transaction, ms", named: true, height: 260, log: true, scale: [edges[0], edges[edges.length - 1]], shape: [edges.length, h.cells.length], paint,
			describe: "How many transactions took how long over the time of the run",
			lines: [
				{ label: "99 %", column: h.p99_ms, color: "red", more: () => ({ width: 1, points: { show: false } }) },
				{ label: "50 %", column: h.p50_ms, color: "ink", more: () => ({ width: 1, points: { show: false } }) },
			],
		});
	}

	// figure is the place of a chart, with what a reader may choose of it.
	function figure(spec, data, redraw) {
		const place = chart(spec), k = data.kinds, a = data.around, add = (...controls) => place.insertBefore(el("div", { class: "choices" }, controls), place.querySelector(".plot"));
		const choice = (label, options, change) => el("label", {}, label + " ", el("select", { onchange: (e) => { change(e.target.value); redraw(); } }, options.map(([value, text, chosen]) => el("option", { value, selected: chosen }, text))));
		if (spec.name === "throughput" && k) {
			add(el("label", {}, el("input", { type: "checkbox", checked: show.kinds, onchange: (e) => { show.kinds = e.target.checked; redraw(); } }), " committed, by kind of transaction"));
		}
		if (spec.name === "latency" && k) {
			add(choice("of", [["", "all transactions", show.kind === ""], ...k.lines.map((l) => [l.name, l.name, show.kind === l.name])], (v) => { show.kind = v; }));
		}
		if (spec.name === "around") {
			const first = show.fault ?? a.first, pick = (i) => {
				show.fault = i;
				redraw();
				place.querySelector("h3").textContent = around(data.timeline, a).title;
			};
			if (a.faults.length > 12) add(choice("fault", a.faults.map((f, i) => [i, `${f.number} ${f.label} at ${digits(f.from_s + 5)} s`, i === first]), (v) => pick(Number(v))));
			else if (a.faults.length > 1) add(a.faults.map((f, i) => el("button", {
				type: "button", "aria-pressed": String(i === first), onclick: (e) => {
					pick(i);
					for (const b of e.target.parentNode.querySelectorAll("button")) b.setAttribute("aria-pressed", String(b === e.target));
				},
			}, `${f.number} ${f.label}`)));
		}
		return place;
	}

	// captions say what the charts of this file show.
	function captions(data) {
		const say = [], bin = (b) => b === 1 ? "second" : `${b} seconds`;
		if (data.around) {
			const cut = data.around.faults.some((f) => f.cut) ? "; of a fault that lasts longer the first two minutes" : "";
			say.push(`Around a fault: what committed in each ${digits(data.around.step_s * 1000)} ms, as a rate, from 5 seconds before the injection to 5 seconds after all was over${cut}. ${data.around.note} `);
		}
		if (data.acknowledged) say.push(`By node: from when to when it acknowledged writes${data.acknowledged.intervals.some((i) => i.lost_from_s !== null) ? "; the thin line below: from when on some of them are lost" : ""}${data.acknowledged.overlaps.length > 0 ? "; red behind: two nodes took writes at once, or were ready to" : ""}. `);
		if (data.heat) say.push(`Each transaction: the darker, the more of them in a ${bin(data.heat.bin_s)} and a tenth of a decade, on a logarithmic scale of colour. `);
		if (data.kinds && data.kinds.bin_s > 1) say.push(`By kind a point stands for ${bin(data.kinds.bin_s)}, all of whose transactions are in its percentiles. `);
		return say;
	}

	// ofPercentiles is the distribution with the percentiles on HdrHistogram's axis: each
	// further nine has as much room.
	function ofPercentiles(h, more) {
		const p = h.percentiles;
		if (!p || p.at.length < 2) return [];
		const lines = [{ label: "since due", column: p.due_ms, color: "blue" }];
		if (more.sent && p.sent_ms) lines.push({ label: "since sent", column: p.sent_ms, color: "red", dash: [6, 3] });
		const nines = (x) => { // 10 is 90 %, 100 is 99 %
			const n = Math.round(Math.log10(x));
			return x === 2 ? "50 %" : n === 0 ? "0 %" : n === 1 ? "90 %" : "99" + (n > 2 ? "." + "9".repeat(n - 2) : "") + " %";
		};
		const percent = (x) => x >= p.count ? "the slowest of all" : String(Number((100 * (1 - 1 / x)).toFixed(Math.max(1, Math.ceil(Math.log10(x))))) ) + " %";
		const ends = [1, p.at[p.at.length - 1]], ticks = [1, 2];
		for (let x = 10; x <= ends[1]; x *= 10) ticks.push(x);
		return [{
			name: "percentiles", title: "Latency by percentile, ms", height: 260, describe: "Latency by percentile, with as much room for each further nine",
			data: [p.at, ...lines.map((l) => l.column)], shape: JSON.stringify([more.sent, ends]),
			options: () => ({
				padding: [8, 26, 0, 0],
				scales: { x: { time: false, distr: 3, log: 10, range: () => ends }, y: { distr: 3, log: 10, range: charts.decades } },
				axes: [
					Object.assign(charts.timeAxis(), { incrs: undefined, space: 30, splits: () => ticks, filter: (u, s) => s, values: (u, list) => list.map(nines), grid: { show: true, stroke: color("faint"), width: 1 } }),
					charts.scaleAxis(true, digits),
				],
				series: [
					{ label: "", value: (u, v, i, n) => n === null || n === undefined ? "" : percent(v) },
					...lines.map((l) => ({
						label: l.label, stroke: color(l.color), width: 1.5, dash: l.dash, points: { show: false },
						value: (u, v, i, n) => n === null || n === undefined || v === null ? "" : ofTime(v),
					})),
				],
				cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
			}),
		}];
	}
	function percentileFigures(h) {
		if (!h) return [];
		return ofPercentiles(h, {}).flatMap((s) => [chart(s), el("p", { class: "note" },
			`At 99 % is the latency that one of a hundred transactions exceeds; each further nine has as much room, and the right end is the slowest of ${group(h.percentiles.count)}. Where few are left the line says little: it has one step for each transaction there.`)]);
	}

	// timeline draws RunCharts.
	kinds.timeline = (c, page, redraw) => {
		const data = { ...c, live: page.live }, t = c.timeline, specs = ofTimeline(data);
		const gone = t.open && !t.columns.waiting.some((n) => n > 0) ? ["No work was waiting at the end of any second."] : [];
		if (!data.live && !charts.known([...t.columns.client_cpu, ...t.columns.servers_cpu])) gone.push("Processors over time: not known.");
		if (!data.live && !charts.known([...t.columns.client_rss_mb, ...t.columns.servers_rss_mb])) gone.push("Memory over time: not known.");
		return {
			specs, key: specs.map((s) => s.name), // the charts stay where they are as long as they are the same ones
			nodes: () => specs.map((s) => figure(s, data, redraw)),
			caption: () => ["Seconds since the run's start. ", t.warmup_s > 0 ? "Grey: the warm-up, which no measurement includes. " : "",
				t.bands.length > 0 ? "Shaded: a fault, and lighter its healing, from when that was begun to when it was done; broken line: the throughput was back. " + (t.bands.length > 20 ? "Where they have no room they are in a strip above: zoom in. " : "") : "",
				t.leaders.length > 0 ? "Line with a wedge: from then on the node beside it led (Cluster events). " : "",
				t.note ? t.note + " " : "", ...captions(data), ...gone.map((g) => g + " "),
				el("span", { class: "screen" }, "Drag to zoom in, double-click to go back.")],
		};
	};

	// server draws what the database measures of itself (ServerPlot), on the time axis of the run.
	kinds.server = (server, page) => {
		const timeline = page.sections.find((s) => s.id === "timeline").chart.data.timeline;
		const time = Object.assign({}, timeline, { at_s: server.at_s, bin_s: server.bin_s }), hues = ["blue", "red", "green", "purple", "grey"];
		const specs = server.charts.map((c, i) => overTime(time, {
			name: "server-" + i, title: c.title, height: 150, describe: c.title + " over the time of the run",
			lines: c.lines.map((l, n) => ({
				label: l.label, column: l.column, low: l.low, high: l.high, shade: true, color: hues[n % hues.length],
				more: () => ({ dash: dashes[Math.floor(n / hues.length) % dashes.length] }),
			})),
		}));
		return {
			specs, key: [server.note, server.charts.map((c) => [c.title, c.note])],
			nodes: () => [el("p", { class: "note" }, server.note), ...specs.flatMap((s, i) => [chart(s), server.charts[i].note ? el("p", { class: "note" }, server.charts[i].note) : null])],
		};
	};

	// histogram draws a HistogramPlot.
	kinds.histogram = (h, page, redraw) => {
		const specs = [charts.ofHistogram(h, show), ...ofPercentiles(h, show)];
		const toggle = (key, label) => el("label", {}, el("input", { type: "checkbox", checked: show[key], onchange: (e) => { show[key] = e.target.checked; redraw(); } }), label);
		return {
			specs, key: [h.sent.length > 0, specs.length],
			nodes: () => [chart(specs[0]),
				el("div", { class: "toggles" }, h.sent.length > 0 ? toggle("sent", "since sent as well (service time)") : null, toggle("log", "shares on a logarithmic scale")),
				...percentileFigures(h)],
		};
	};
})();
