"use strict";
// The charts of a run's page, and what all charts share. draw() makes or renews
// them; everything that they show is in RunCharts. Times are seconds since the run's start, latencies milliseconds.
window.stroppy = {};
(() => {
	const live = new Map(); // name -> {plot, spec, place}

	const palette = new Map(); // of the scheme that is shown
	const color = (name) => {
		if (!palette.has(name)) palette.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
		return palette.get(name);
	};
	const group = (x) => Math.round(x).toString().replace(/\B(?=(\d{3})+$)/g, ",");
	const digits = (x) => {
		if (x === 0) return "0";
		if (Math.abs(x) >= 100) return group(x);
		return String(Number(x.toPrecision(3)));
	};
	const clock = (s) => {
		if (s === 0) return "0";
		if (s < 120 || !Number.isInteger(s)) return digits(s) + " s";
		const two = (n) => String(n).padStart(2, "0");
		const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
		return h > 0 ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
	};
	const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
	const some = (column) => column.some((x) => x !== null && x !== 0);
	const known = (column) => column.some((x) => x !== null);

	// value is what the legend shows under the cursor: of a bin its mean, and the lowest
	// and the highest of its seconds.
	const value = (write, low, high) => (u, v, i, at) => {
		if (at === null || at === undefined) return "";
		if (v === null) return "none";
		if (!low || low[at] === high[at]) return write(v);
		return `${write(v)} (${write(low[at])} to ${write(high[at])})`;
	};

	// Ranges: linear ones begin at zero, logarithmic ones end at round numbers.
	const fromZero = (u, min, max) => [0, max > 0 ? max * 1.06 : 1];
	const decades = (u, min, max) => {
		if (!(min > 0) || !(max > 0)) return [0.1, 100];
		const low = round(min, Math.floor), high = round(max, Math.ceil);
		return [low, high > low ? high : low * 10];
	};
	// round goes down or up to the next of 1, 2 and 5 times a power of ten.
	function round(x, way) {
		const p = 10 ** Math.floor(Math.log10(x)), m = x / p * (way === Math.ceil ? 0.999999 : 1.000001);
		const to = way === Math.ceil ? [1, 2, 5, 10].find((n) => n >= m) : [5, 2, 1].find((n) => n <= m) || 1;
		return Number((to * p).toPrecision(3));
	}

	// bands draws the warm-up and the faults behind a chart, and paint what is a chart's own.
	function bands(ref, named, paint) {
		const clip = (u, from, to) => {
			const b = u.bbox, left = Math.max(u.valToPos(from, "x", true), b.left), right = Math.min(u.valToPos(to, "x", true), b.left + b.width);
			return [left, Math.max(right - left, from <= u.scales.x.max && to >= u.scales.x.min ? 2 : 0)];
		};
		const behind = (u) => {
			const c = u.ctx, b = u.bbox, timeline = ref.timeline;
			c.save();
			if (timeline.warmup_s > 0) {
				const [x, w] = clip(u, 0, timeline.warmup_s);
				c.fillStyle = color("warmup");
				if (w > 0) c.fillRect(x, b.top, w, b.height);
			}
			// Upright rectangles cost next to nothing, and a long run has hundreds of bands.
			const px = devicePixelRatio, seen = timeline.bands.filter((f) => f.from_s <= u.scales.x.max && Math.max(f.back_s ?? 0, f.healed_s ?? f.to_s) >= u.scales.x.min);
			const strip = crowded(u, seen.length), high = strip ? 4 * px : b.height, from = strip ? b.top - 10 * px : b.top;
			const block = (begin, end) => {
				const [x, w] = clip(u, begin, end);
				if (w > 0 && x <= b.left + b.width) c.fillRect(x, from, w, high);
			};
			const at = (t) => t < u.scales.x.min || t > u.scales.x.max ? null : Math.round(u.valToPos(t, "x", true));
			c.fillStyle = color(strip ? "band-edge" : "band");
			for (const f of seen) block(f.from_s, f.to_s);
			c.globalAlpha = .45;
			for (const f of seen) if (f.healed_s !== null && f.healed_s > f.to_s) block(f.to_s, f.healed_s);
			c.globalAlpha = 1;
			c.fillStyle = color("band-edge");
			for (const f of strip ? [] : seen) {
				const x = at(f.from_s), back = f.back_s === null ? null : at(f.back_s);
				if (x !== null) c.fillRect(x, b.top, px, b.height);
				if (back === null || x !== null && back - x <= 2 * px) continue;
				for (let y = 0; y < b.height; y += 6 * px) c.fillRect(back, b.top + y, px, Math.min(3 * px, b.height - y));
			}
			if (paint) paint(u);
			shades(u);
			c.restore();
		};
		// shades goes from the lowest second of each bin to the highest.
		const shades = (u) => {
			const c = u.ctx, b = u.bbox, x = u.data[0];
			c.save();
			c.beginPath(); c.rect(b.left, b.top, b.width, b.height); c.clip();
			c.globalAlpha = .22;
			u.series.forEach((s, i) => {
				if (!s.shade || !s.show) return;
				c.fillStyle = s.stroke(u, i);
				const { low, high } = s.shade, least = u.scales.y.distr === 3 ? u.scales.y.min : 0;
				// A rectangle for each column of pixels, from the lowest to the highest in it.
				const middle = (k) => Math.round((u.valToPos(x[k - 1], "x", true) + u.valToPos(x[k], "x", true)) / 2);
				for (let k = 0, left = b.left; k < x.length;) {
					let bottom = Infinity, top = -Infinity, right;
					do {
						if (low[k] !== null) { bottom = Math.min(bottom, low[k]); top = Math.max(top, high[k]); }
						k++;
						right = k < x.length ? middle(k) : b.left + b.width;
					} while (k < x.length && right <= left);
					if (top >= bottom && right > b.left && left < b.left + b.width) {
						const y = Math.round(u.valToPos(top, "y", true));
						c.fillRect(left, y, right - left, Math.round(u.valToPos(Math.max(bottom, least), "y", true)) - y);
					}
					left = Math.max(left, right);
				}
			});
			c.restore();
		};
		// leaders marks when a node took the lead.
		const leaders = (u) => {
			const c = u.ctx, b = u.bbox, px = devicePixelRatio;
			let free = b.left;
			c.save();
			c.font = `600 ${11 * px}px ${color("sans")}`;
			c.textBaseline = "top";
			c.fillStyle = color("purple");
			const seen = ref.timeline.leaders.filter((l) => l.at_s >= u.scales.x.min && l.at_s <= u.scales.x.max).map((l) => [u.valToPos(l.at_s, "x", true), l.leader]);
			const strip = crowded(u, seen.length);
			for (const [x] of strip ? seen : []) c.fillRect(Math.round(x - px), b.top - 5 * px, 2 * px, 4 * px);
			if (strip) seen.length = 0;
			c.globalAlpha = .55;
			for (const [x] of seen) c.fillRect(Math.round(x - px), b.top, 1.5 * px, b.height);
			c.globalAlpha = 1;
			c.beginPath();
			for (const [x] of seen) { c.moveTo(x - 4 * px, b.top); c.lineTo(x + 4 * px, b.top); c.lineTo(x, b.top + 7 * px); }
			c.fill();
			if (named) for (const [x, name] of seen) {
				const text = name + " leads", w = c.measureText(text).width + 9 * px;
				const left = x + w > b.left + b.width; // there is no room at its right
				if ((left ? x - w : x) < free) continue;
				c.textAlign = left ? "right" : "left";
				c.fillText(text, left ? x - 7 * px : x + 7 * px, b.top + px);
				free = left ? x : x + w;
			}
			c.restore();
		};
		const labels = (u) => {
			const c = u.ctx, b = u.bbox, px = devicePixelRatio, right = b.left + b.width, timeline = ref.timeline;
			c.save();
			c.font = `${11 * px}px ${color("sans")}`;
			c.textBaseline = "bottom";
			c.textAlign = "left";
			const y = b.top - 3 * px;
			let free = b.left;
			const all = timeline.bands.filter((f) => f.from_s <= u.scales.x.max && f.to_s >= u.scales.x.min);
			if (crowded(u, all.length)) {
				c.restore();
				return;
			}
			const place = (text, x, until) => {
				const w = c.measureText(text).width;
				if (x < free || x + w > until) return false;
				c.fillText(text, x, y);
				free = x + w + 8 * px;
				return true;
			};
			c.fillStyle = color("soft");
			const first = all.length > 0 ? u.valToPos(all[0].from_s, "x", true) : right;
			if (named && timeline.warmup_s > u.scales.x.min) place("warm-up", b.left, first);
			c.fillStyle = color("red");
			all.forEach((f, i) => {
				const x = Math.max(u.valToPos(f.from_s, "x", true), b.left);
				const until = i + 1 < all.length ? u.valToPos(all[i + 1].from_s, "x", true) - 6 * px : right + 8 * px;
				if (until - x < 6 * px) return;
				// Of a name that does not fit, as much as fits; at least the number.
				for (let n = named ? f.label.length : 0; n >= 0; n = n > 0 && n < 6 ? 0 : n - 1) {
					const name = n === 0 ? "" : " " + f.label.slice(0, n).trimEnd() + (n < f.label.length ? "…" : "");
					if (place(f.number + name, x, until)) return;
				}
			});
			c.restore();
		};
		return { drawClear: [behind], draw: [labels, leaders] };
	}

	// crowded says that so many marks would cover a chart: they go into a strip above it, until
	// a reader has zoomed in.
	const crowded = (u, n) => n > u.bbox.width / devicePixelRatio / 14;

	// alone finds the points without a neighbour, which a line alone would not show.
	function alone(u, i, show) {
		const column = u.data[i], found = [];
		if (show) return null;
		for (let k = 0; k < column.length; k++) {
			if (column[k] !== null && (column[k - 1] ?? null) === null && (column[k + 1] ?? null) === null) found.push(k);
		}
		return found.length > 0 ? found : null;
	}
	function line(label, stroke, write, more, shade) {
		return Object.assign({
			label, stroke: color(stroke), width: 1.5, value: value(write, shade && shade.low, shade && shade.high), spanGaps: false,
			points: { size: 5, fill: color(stroke), stroke: color(stroke), show: (u, i, from, to) => to - from < 30, filter: alone },
		}, more);
	}

	const font = () => `${12}px ${color("sans")}`;
	function axis(more) {
		return Object.assign({
			stroke: color("soft"), font: font(), gap: 6,
			grid: { stroke: color("faint"), width: 1 }, ticks: { show: false }, border: { show: false },
		}, more);
	}
	function timeAxis() {
		return axis({
			incrs: steps, space: 70, size: 30, values: (u, ticks) => ticks.map(clock),
			grid: { show: false }, ticks: { show: true, stroke: color("grey"), width: 1, size: 4 }, border: { show: true, stroke: color("grey"), width: 1 },
		});
	}

	function scaleAxis(log, write) {
		const y = axis({ size: 62, values: (u, ticks) => ticks.map(write) });
		return log ? Object.assign(y, { splits: (u) => decimals(u.scales.y.min, u.scales.y.max), filter: (u, ticks) => ticks }) : y;
	}

	// overTime is a chart with the time of the run below it, or a part of that: from o.from to
	// o.to, apart from the other charts. o.paint draws behind the lines, on the scale o.scale.
	function overTime(timeline, o) {
		// A live chart is given a new timeline and keeps its options.
		const ref = { timeline }, at = timeline.at_s, bin = timeline.bin_s;
		// The scale has room for the highest of what is shaded.
		const highest = (u, max) => Math.max(max, ...o.lines.filter((l) => l.shade && l.high).map((l) =>
			l.high.reduce((most, x, i) => x > most && at[i] >= u.scales.x.min && at[i] <= u.scales.x.max ? x : most, 0)));
		const range = (u, min, max) => {
			const { at_s, end_s } = ref.timeline, last = at_s[at_s.length - 1];
			if (o.to !== undefined) return min <= o.from && max >= o.to ? [o.from, o.to] : [min, max];
			return min <= at_s[0] && max >= last ? [0, Math.max(end_s, last)] : [min, max];
		};
		return {
			ref, shape: JSON.stringify([bin, o.shape, o.lines.map((l) => l.label)]), name: o.name, title: o.title, height: o.height || 220, data: [at, ...o.lines.map((l) => l.column)], until: timeline.end_s,
			describe: o.describe,
			options: () => ({
				padding: [(o.named || timeline.bands.length > 0 ? 20 : 8), 26, 0, 0],
				scales: {
					x: { time: false, range },
					y: o.scale ? { distr: 3, log: 10, range: () => o.scale } : o.log ? { distr: 3, log: 10, range: (u, min, max) => decades(u, min, highest(u, max)) } : { range: (u, min, max) => fromZero(u, min, highest(u, max)) },
				},
				axes: [timeAxis(), scaleAxis(o.log, digits)],
				series: [
					{ label: "", value: (u, v, i, n) => n === null || n === undefined ? "" : (o.span || span)(v, bin) },
					...o.lines.map((l) => Object.assign(line(l.label, l.color, l.write || digits, l.more && l.more(), l.low && l), l.shade && l.low ? { shade: l, fill: undefined } : {})),
				],
				hooks: bands(ref, o.named, o.paint),
				cursor: { sync: { key: o.to === undefined ? "timeline" : o.name, scales: ["x", null] }, y: false, points: { size: 7 }, drag: { x: true, y: false, setScale: true } },
			}),
		};
	}
	// span names the seconds that a point in their middle stands for.
	function span(v, bin) {
		if (bin === 1) return "second " + group(Math.floor(v));
		const from = Math.floor(v / bin) * bin;
		return `seconds ${group(from)} to ${group(from + bin - 1)}`;
	}

	// ofTimeline lists the charts over time that there is something to draw for.
	function ofTimeline(timeline) {
		const c = timeline.columns, charts = [];
		const of = (name, label, color, more) => Object.assign({ label, color, column: c[name], low: timeline.low && timeline.low[name], high: timeline.high && timeline.high[name] }, more);
		const counts = [of("committed", "committed", "blue", { write: group, shade: true, more: () => ({ fill: color("fill") }) })];
		if (some(c.rejected)) counts.push(of("rejected", "rejected", "green", { write: group, more: () => ({ dash: [6, 3] }) }));
		if (some(c.aborted)) counts.push(of("aborted", "aborted", "purple", { write: group, more: () => ({ dash: [2, 2] }) }));
		if (some(c.unknown)) counts.push(of("unknown", "in doubt", "red", { write: group }));
		if (timeline.target > 0) counts.push({ label: "asked for", column: timeline.at_s.map(() => timeline.target), color: "grey", write: group, more: () => ({ width: 1, dash: [8, 4], points: { show: false } }) });
		charts.push(overTime(timeline, { name: "throughput", title: "Throughput, transactions per second", named: true, lines: counts, describe: "Transactions per second over the time of the run" }));
		const most = timeline.high ? { column: timeline.high.max_ms, low: null } : {}; // of a bin the slowest of all
		charts.push(overTime(timeline, {
			name: "latency", title: "Latency of committed transactions, ms", log: true, named: true, height: 280, describe: "Latency over the time of the run on a logarithmic scale",
			lines: [
				of("max_ms", "max", "grey", Object.assign({ more: () => ({ width: 1, dash: timeline.at_s.length > 600 ? undefined : [2, 2] }) }, most)),
				...known(c.p999_ms) ? [of("p999_ms", "99.9 %", "amber")] : [],
				of("p99_ms", "99 %", "red", { shade: true }),
				...known(c.p90_ms) ? [of("p90_ms", "90 %", "green")] : [],
				of("p50_ms", "50 %", "blue", { more: () => ({ width: 2 }) }),
			],
		}));
		if (timeline.open && some(c.waiting)) charts.push(overTime(timeline, {
			name: "queue", title: "Late work: transactions due and not sent", height: 150, describe: "The queue of late work over the time of the run",
			lines: [of("waiting", "waiting", "purple", { write: group, shade: true, more: () => ({ fill: color("warmup") }) })],
		}));
		const pair = (name, title, one, two, label = ["client", "servers"]) => {
			const lines = [];
			if (c[two] && known(c[two])) lines.push(of(two, label[1], "red", { shade: true }));
			if (c[one] && known(c[one])) lines.push(of(one, label[0], "blue", { shade: true, more: () => ({ dash: [6, 3] }) }));
			if (lines.length > 0) charts.push(overTime(timeline, { name, title, lines, height: 150, describe: title + " over the time of the run" }));
		};
		pair("processors", "Processors kept busy", "client_cpu", "servers_cpu");
		pair("memory", "Memory, MB", "client_rss_mb", "servers_rss_mb");
		pair("network", "Network of the servers, MB per second", "servers_sent_mb", "servers_received_mb", ["sent", "received"]);
		pair("volumes", "Space used on the volumes of the servers, MB", "", "servers_stored_mb");
		return charts;
	}

	// ofHistogram is the distribution of latency: steps over bins that are equally
	// wide on the log scale, as shares of all transactions.
	function ofHistogram(h, show) {
		const edges = h.edges_ms;
		const share = (counts) => {
			const all = counts.reduce((a, b) => a + b, 0);
			const out = counts.map((n) => all > 0 ? 100 * n / all : 0);
			out.push(out[out.length - 1]);
			return show.log ? out.map((x) => x > 0 ? x : null) : out;
		};
		const columns = [{ label: "since due", column: share(h.due), color: "blue", fill: true }];
		if (show.sent && h.sent.length > 0) columns.push({ label: "since sent", column: share(h.sent), color: "red" });
		const percent = (x) => digits(x) + " %";
		return {
			name: "histogram", title: "Distribution of latency, % of committed transactions", height: 260,
			data: [edges, ...columns.map((c) => c.column)], describe: "Histogram of latency on a logarithmic scale",
			shape: JSON.stringify([show, edges.length, h.marks]),
			options: () => ({
				padding: [46, 26, 0, 0],
				scales: {
					x: { time: false, distr: 3, log: 10, range: (u, min, max) => [Math.min(min, edges[0]), Math.max(max, edges[edges.length - 1])] },
					y: show.log ? { distr: 3, log: 10, range: decades } : { range: fromZero },
				},
				axes: [
					Object.assign(timeAxis(), { incrs: undefined, space: 30, splits: () => decimals(edges[0], edges[edges.length - 1]), filter: (u, s) => s, values: (u, ticks) => ticks.map(ofTime) }),
					scaleAxis(show.log, percent),
				],
				series: [
					{ label: "", value: (u, v, i, n) => n === null || n === undefined || n + 1 >= edges.length ? "" : `${ofTime(edges[n])} to ${ofTime(edges[n + 1])}` },
					...columns.map((c) => ({
						label: c.label, stroke: color(c.color), width: 1.5, fill: c.fill ? color("fill") : undefined,
						dash: c.fill ? undefined : [6, 3], paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
						value: (u, v, i, n) => n === null || n === undefined ? "" : v === null ? "none" : percent(v),
					})),
				],
				hooks: { draw: [(u) => marks(u, h.marks)] },
				cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
			}),
		};
	}
	const ofTime = (ms) => ms >= 1000 ? digits(ms / 1000) + " s" : ms < 1 ? digits(ms * 1000) + " µs" : digits(ms) + " ms";
	// decimals are the round places of a log scale between two numbers.
	function decimals(low, high) {
		const few = Math.log10(high / low) < 2, out = [];
		for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
			for (const m of few ? [1, 2, 5] : [1]) {
				const x = Number((m * 10 ** p).toPrecision(3));
				if (x >= low * 0.999 && x <= high * 1.001) out.push(x);
			}
		}
		return out;
	}
	function marks(u, list) {
		const c = u.ctx, b = u.bbox, px = devicePixelRatio, ends = [-Infinity, -Infinity, -Infinity];
		c.save();
		c.font = `${11 * px}px ${color("sans")}`;
		c.fillStyle = c.strokeStyle = color("soft");
		c.lineWidth = px;
		c.textAlign = "center";
		c.textBaseline = "bottom";
		for (const m of list) {
			if (m.at_ms === null || m.at_ms < u.scales.x.min || m.at_ms > u.scales.x.max * 1.0001) continue;
			const x = u.valToPos(m.at_ms, "x", true), w = c.measureText(m.name).width / 2;
			const at = Math.min(Math.max(x, b.left + w), b.left + b.width + 14 * px - w);
			let row = 0; // of three rows, so that neighbours do not cover each other
			while (row < 3 && at - w < ends[row] + 6 * px) row++;
			if (row < 3) {
				ends[row] = at + w;
				c.fillText(m.name, at, b.top - (4 + 13 * row) * px);
			}
			c.setLineDash([2 * px, 3 * px]);
			c.beginPath(); c.moveTo(x, b.top - (row === 3 ? 0 : 3 + 13 * row) * px); c.lineTo(x, b.top + b.height); c.stroke();
			c.setLineDash([]);
		}
		c.restore();
	}

	// draw puts one chart into its place, or renews its data where its shape is the
	// same, so that a zoom and the cursor stay.
	function draw(spec, place) {
		const old = live.get(spec.name);
		if (old && old.place === place && old.spec.shape === spec.shape && !spec.fresh) {
			const x = old.plot.scales.x, zoomed = spec.ref && (x.min > 0 || x.max < old.spec.until);
			if (spec.ref) old.spec.ref.timeline = spec.ref.timeline;
			old.spec.data = spec.data;
			old.spec.until = spec.until;
			old.plot.setData(spec.data, !zoomed);
			if (zoomed) old.plot.redraw();
			return;
		}
		if (old) old.plot.destroy();
		live.delete(spec.name);
		later.set(spec.name, () => make(spec, place));
		if (burst++ === 0) setTimeout(rest);
		if (burst <= atOnce) work(spec.name);
	}

	// Charts below the first ones are made one after the other when what is above them has
	// been shown: a reader need not wait for them.
	const later = new Map(); // name -> makes it
	const atOnce = 2;
	let burst = 0, wide = 0; // of the charts that are drawn at the same time: how many, and how wide they are
	function work(name) {
		const make = later.get(name);
		later.delete(name);
		make();
	}
	function rest() {
		burst = wide = 0;
		for (const name of later.keys()) {
			work(name);
			setTimeout(rest);
			break;
		}
	}
	// finish makes all that are waited for.
	function finish() {
		for (const name of [...later.keys()]) work(name);
	}

	// marker is the background of a legend's mark: a piece of its line, with the dashes of the plot.
	function marker(stroke, dash) {
		return dash ? `repeating-linear-gradient(to right, ${stroke} 0 ${dash[0]}px, transparent ${dash[0]}px ${dash[0] + dash[1]}px)` : stroke;
	}

	function make(spec, place) {
		const plotAt = place.querySelector(".plot"), legendAt = place.querySelector(".legend");
		legendAt.replaceChildren();
		// All charts of a page are as wide; to ask each, after the last was put in its place,
		// would lay out the whole page again each time.
		wide ||= plotAt.clientWidth;
		const width = Math.max(wide, 200);
		const options = Object.assign(spec.options(), {
			width, height: spec.height,
			legend: { live: true, mount: (u, el) => legendAt.append(el), markers: { width: 0, fill: (u, i) => marker(u.series[i].stroke(u, i), u.series[i].dash) } },
		});
		spec.fresh = false;
		live.set(spec.name, { plot: new uPlot(options, spec.data, plotAt), spec, place });
	}

	function drop(keep) {
		for (const name of later.keys()) if (!keep.includes(name)) later.delete(name);
		for (const [name, c] of live) {
			if (keep.includes(name)) continue;
			c.plot.destroy();
			live.delete(name);
		}
	}
	function resize() {
		for (const c of live.values()) {
			const width = c.place.querySelector(".plot").clientWidth;
			if (width > 0 && width !== c.plot.width) c.plot.setSize({ width, height: c.spec.height });
		}
	}
	// renew draws all again: the colours have changed, or the paper.
	function renew() {
		palette.clear();
		for (const c of [...live.values()]) draw(Object.assign({}, c.spec, { fresh: true }), c.place);
		finish();
	}

	window.stroppy.charts = {
		ofTimeline, ofHistogram, overTime, draw, drop, resize, renew, known, waiting: () => later.size,
		color, digits, group, line, axis, timeAxis, scaleAxis, decades, decimals, fromZero, ofTime, span, // for the charts of other pages
	};
})();
