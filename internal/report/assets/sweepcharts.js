"use strict";
// The charts of a sweep. Everything that they show is in sweep.Charts. Steps are
// drawn one by one over the axes that uPlot makes, because a curve of throughput
// and latency may bend back, which no function of x does.
(() => {
	const c = window.stroppy.charts, kinds = window.stroppy.kinds, place = window.stroppy.parts.chart;
	const lines = [["50 %", "latency_p50_ms", "blue", []], ["99 %", "latency_p99_ms", "red", []], ["99.9 %", "latency_p999_ms", "purple", [6, 3]]];

	// brush gives a canvas with the helpers that marks are made with, clipped to the
	// chart unless outside is asked for.
	function brush(u, paint, outside) {
		const g = u.ctx, px = devicePixelRatio, b = u.bbox;
		g.save();
		if (!outside) {
			g.beginPath();
			g.rect(b.left - 8 * px, b.top - 8 * px, b.width + 16 * px, b.height + 16 * px);
			g.clip();
		}
		g.lineWidth = 1.5 * px;
		g.font = `${11 * px}px ${c.color("sans")}`;
		paint(g, px, (x) => u.valToPos(x, "x", true), (y) => u.valToPos(y, "y", true), b);
		g.restore();
	}
	function shape(g, px, kind, x, y, colour) {
		g.beginPath();
		g.setLineDash([]);
		g.strokeStyle = colour;
		if (kind === "diamond") {
			g.moveTo(x, y - 7 * px); g.lineTo(x + 7 * px, y); g.lineTo(x, y + 7 * px); g.lineTo(x - 7 * px, y); g.closePath();
		} else {
			g.arc(x, y, (kind === "ring" ? 4 : 3.5) * px, 0, 2 * Math.PI);
		}
		g.fillStyle = kind === "ring" ? c.color("paper") : colour;
		g.fill();
		g.stroke();
	}
	// flag crosses out what is invalid and rings what is not known to be valid.
	function flag(g, px, step, x, y) {
		if (step.verdict === "valid") return;
		const invalid = step.verdict === "invalid";
		g.strokeStyle = c.color(invalid ? "invalid" : "unknown");
		g.lineWidth = 2.5 * px;
		g.setLineDash([]);
		g.beginPath();
		g.arc(x, y, 9 * px, 0, 2 * Math.PI);
		if (invalid) { g.moveTo(x - 6 * px, y - 6 * px); g.lineTo(x + 6 * px, y + 6 * px); g.moveTo(x + 6 * px, y - 6 * px); g.lineTo(x - 6 * px, y + 6 * px); }
		g.stroke();
		g.lineWidth = 1.5 * px;
	}
	// say writes a text over a place, within the chart, on the page's ground.
	function say(g, px, b, text, x, y, colour, weight) {
		g.font = `${weight || 400} ${11 * px}px ${c.color("sans")}`;
		const w = g.measureText(text).width, left = Math.min(Math.max(x - w / 2, b.left + 2 * px), b.left + b.width - w - 2 * px);
		const top = Math.min(Math.max(y, b.top + 14 * px), b.top + b.height - 4 * px);
		g.fillStyle = c.color("paper");
		g.globalAlpha = 0.8;
		g.fillRect(left - 2 * px, top - 12 * px, w + 4 * px, 15 * px);
		g.globalAlpha = 1;
		g.fillStyle = colour;
		g.textAlign = "left";
		g.textBaseline = "alphabetic";
		g.fillText(text, left, top);
	}
	function upright(g, px, b, x, colour) {
		g.strokeStyle = colour;
		g.lineWidth = px;
		g.setLineDash([3 * px, 3 * px]);
		g.beginPath(); g.moveTo(x, b.top); g.lineTo(x, b.top + b.height); g.stroke();
		g.setLineDash([]);
		g.lineWidth = 1.5 * px;
	}
	// unsaid is the verdict of a step for the legend, where it matters.
	const unsaid = (s) => s.verdict === "valid" ? "" : " · " + s.verdict.toUpperCase();

	const numberAxis = () => Object.assign(c.timeAxis(), { incrs: undefined, space: 60, values: (u, ticks) => ticks.map((n) => n >= 1e6 ? c.digits(n / 1e6) + " M" : c.digits(n)) });
	// whole is for what comes in whole numbers.
	const whole = () => Object.assign(numberAxis(), { incrs: [1, 2, 5].flatMap((n) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].map((p) => n * p)).sort((a, b) => a - b) });
	const latencyAxis = () => c.scaleAxis(true, c.ofTime);
	// unseen is a series that only the legend tells of.
	const unseen = (label, colour, dash, write) => ({
		label, stroke: c.color(colour), width: 1.5, dash: dash.length > 0 ? dash : undefined, paths: () => null, points: { show: false },
		value: (u, v, i, n) => n === null || n === undefined ? "" : v === null || v === undefined ? "none" : write(v),
	});
	const points = { show: false };
	// room is a range about the latencies of a log scale with space for marks.
	const room = (u, min, max) => min > 0 && max > 0 ? [min / 1.6, max * 2.8] : [0.1, 100];

	// ofRate is the curve of throughput and latency. A step whose throughput is not
	// known has no place on it.
	function ofRate(d) {
		const order = d.steps.filter((s) => !s.full), measured = d.steps.filter((s) => s.tps !== null);
		const full = measured.filter((s) => s.full), asked = measured.filter((s) => !s.full);
		const sorted = [...measured].sort((a, b) => a.tps - b.tps);
		const paint = (u) => brush(u, (g, px, at, to, b) => {
			if (d.knee) upright(g, px, b, at(d.knee.tps), c.color("ink"));
			for (const [, key, colour, dash] of lines) {
				g.strokeStyle = c.color(colour);
				g.setLineDash(dash.map((n) => n * px));
				g.beginPath();
				let drawing = false; // a step that has no latency, or no place, breaks the line
				for (const s of order) {
					if (s.tps === null || s[key] === null) { drawing = false; continue; }
					g[drawing ? "lineTo" : "moveTo"](at(s.tps), to(s[key]));
					drawing = true;
				}
				g.stroke();
				for (const s of full) if (s[key] !== null) shape(g, px, "diamond", at(s.tps), to(s[key]), c.color(colour));
				for (const s of asked) if (s[key] !== null) shape(g, px, s.kept ? "dot" : "ring", at(s.tps), to(s[key]), c.color(colour));
				for (const s of measured) if (s[key] !== null) flag(g, px, s, at(s.tps), to(s[key]));
			}
			if (d.knee) say(g, px, b, d.knee.label, at(d.knee.tps), b.top + 14 * px, c.color("ink"), 650);
			for (const s of full) {
				const top = Math.max(...lines.map((l) => s[l[1]] ?? 0));
				if (top > 0) say(g, px, b, "maximum rate", at(s.tps), to(top) - 12 * px, c.color("soft"));
			}
			for (const s of measured) {
				const low = Math.min(...lines.map((l) => s[l[1]] ?? Infinity));
				if (s.verdict === "invalid" && low < Infinity) say(g, px, b, "invalid", at(s.tps), to(low) + 24 * px, c.color("invalid"), 650);
			}
		});
		return {
			name: "curve", title: "Latency by throughput", height: 340, shape: "curve", describe: "Latency on a logarithmic scale by achieved throughput",
			data: [sorted.map((s) => s.tps), ...lines.map(([, key]) => sorted.map((s) => s[key]))],
			options: () => ({
				padding: [10, 26, 0, 0],
				scales: { x: { time: false, range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1] }, y: { distr: 3, log: 10, range: room } },
				axes: [numberAxis(), latencyAxis()],
				series: [
					{ label: "", value: (u, v, i, n) => n === null || n === undefined ? "" : `${sorted[n].full ? "maximum rate" : "asked " + c.digits(sorted[n].value)}, did ${c.digits(v)}/s${unsaid(sorted[n])}` },
					...lines.map(([label, , colour, dash]) => unseen(label, colour, dash, c.ofTime)),
				],
				hooks: { draw: [paint] }, cursor: { y: false, points, drag: { x: false, y: false } },
			}),
		};
	}

	// ofLaw is the throughput by N with the law fitted to it.
	function ofLaw(d) {
		const known = new Map(d.steps.map((s) => [s.value, s]));
		const curve = d.law ? d.law.curve : [], at = new Map(curve);
		const xs = [...new Set([...known.keys(), ...at.keys()])].sort((a, b) => a - b);
		const most = d.law ? d.law.most : 0;
		const highest = Math.max(...d.steps.map((s) => s.tps_high ?? s.tps ?? 0), ...curve.map((p) => p[1]), 0);
		const paint = (u) => brush(u, (g, px, X, Y, b) => {
			if (d.law) {
				g.save();
				g.beginPath();
				g.rect(b.left, b.top, b.width, b.height);
				g.clip();
				const end = u.scales.x.max;
				g.strokeStyle = c.color("grey");
				g.setLineDash([2 * px, 4 * px]);
				g.beginPath(); g.moveTo(X(0), Y(0)); g.lineTo(X(end), Y(end * d.law.lambda)); g.stroke();
				g.strokeStyle = c.color("red");
				g.lineWidth = 2 * px;
				for (const [dash, part] of [[[], curve.filter((p) => p[0] <= most)], [[6, 4], curve.filter((p, i) => p[0] > most || (curve[i + 1] && curve[i + 1][0] > most))]]) {
					g.setLineDash(dash.map((n) => n * px));
					g.beginPath();
					part.forEach((p, i) => g[i === 0 ? "moveTo" : "lineTo"](X(p[0]), Y(p[1])));
					g.stroke();
				}
				g.restore();
				const peak = d.law.peak;
				if (peak) {
					upright(g, px, b, X(peak.n), c.color("red"));
					shape(g, px, "ring", X(peak.n), Y(peak.tps), c.color("red"));
				}
			}
			for (const s of d.steps.filter((s) => s.tps !== null)) {
				const x = X(s.value), colour = c.color("blue");
				if (s.tps_low !== null && s.tps_high !== null) {
					g.strokeStyle = colour;
					g.setLineDash([]);
					g.beginPath();
					g.moveTo(x, Y(s.tps_low)); g.lineTo(x, Y(s.tps_high));
					for (const end of [s.tps_low, s.tps_high]) { g.moveTo(x - 4 * px, Y(end)); g.lineTo(x + 4 * px, Y(end)); }
					g.stroke();
				}
				shape(g, px, "dot", x, Y(s.tps), colour);
				flag(g, px, s, x, Y(s.tps));
				if (s.verdict === "invalid") say(g, px, b, "invalid", x, Y(s.tps) + 24 * px, c.color("invalid"), 650);
			}
			if (d.law && d.law.peak) say(g, px, b, d.law.peak.label, X(d.law.peak.n), b.top + 14 * px, c.color("red"), 650);
		});
		const series = () => [unseen("measured", "blue", [], c.group),
			...(d.law ? [unseen("scalability law", "red", [], c.group), unseen("ideal", "grey", [2, 2], c.group)] : [])];
		const between = (x) => { // the law at a step that the curve has no point at
			if (at.has(x)) return at.get(x);
			const i = curve.findIndex((p) => p[0] > x);
			if (i < 1) return null;
			const [a, b] = [curve[i - 1], curve[i]];
			return a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]);
		};
		const data = [xs, xs.map((x) => known.has(x) ? known.get(x).tps : null)];
		if (d.law) data.push(xs.map(between), xs.map((x) => d.law.lambda * x));
		// The cursor goes from one step to the next.
		const steps = xs.map((x, i) => known.has(x) ? i : -1).filter((i) => i >= 0);
		const nearest = (u, i, closest, x) => steps.length === 0 ? closest : steps.reduce((best, n) => Math.abs(xs[n] - x) < Math.abs(xs[best] - x) ? n : best);
		return {
			name: "scaling", title: `Throughput by ${d.axis}, transactions per second`, height: 340, shape: "scaling", describe: `Throughput by number of ${d.axis}, with the scalability law`,
			data,
			options: () => ({
				padding: [12, 26, 0, 0],
				scales: { x: { time: false, range: (u, min, max) => [0, max > 0 ? max * 1.04 : 1] }, y: { range: () => [0, highest > 0 ? highest * 1.18 : 1] } },
				axes: [whole(), c.scaleAxis(false, c.digits)],
				series: [{ label: "", value: (u, v, i, n) => n === null || n === undefined ? "" : `${c.digits(v)} ${d.axis}${known.has(v) ? unsaid(known.get(v)) : ""}` }, ...series()],
				hooks: { draw: [paint] }, cursor: { y: false, points, dataIdx: nearest, drag: { x: false, y: false } },
			}),
		};
	}

	// ofSizes is the latency by N.
	function ofSizes(d) {
		const all = [...lines, ["max", "latency_max_ms", "grey", [2, 2]]];
		const paint = (u) => brush(u, (g, px, X, Y) => {
			for (const s of d.steps) for (const [, key] of all) if (s[key] !== null) flag(g, px, s, X(s.value), Y(s[key]));
		});
		return {
			name: "latency", title: `Latency by ${d.axis}`, height: 260, shape: "sizes", describe: `Latency by number of ${d.axis} on a logarithmic scale`,
			data: [d.steps.map((s) => s.value), ...all.map(([, key]) => d.steps.map((s) => s[key]))],
			options: () => ({
				padding: [10, 26, 0, 0],
				scales: { x: { time: false, range: (u, min, max) => [0, max > 0 ? max * 1.04 : 1] }, y: { distr: 3, log: 10, range: room } },
				axes: [whole(), latencyAxis()],
				series: [
					{ label: "", value: (u, v, i, n) => n === null || n === undefined ? "" : `${c.digits(v)} ${d.axis}${unsaid(d.steps[n])}` },
					...all.map(([label, , colour, dash]) => c.line(label, colour, c.ofTime, { dash: dash.length > 0 ? dash : undefined, points: { show: true, size: 6, fill: c.color(colour), stroke: c.color(colour) } })),
				],
				hooks: { draw: [paint] }, cursor: { y: false, points, drag: { x: false, y: false } },
			}),
		};
	}
	kinds.rate = (d) => {
		const said = ["Latency from the intended start time, by throughput. The line joins the steps in the order of the rate asked. "];
		if (d.repeated) said.push("Points: medians where a step was measured more than once. ");
		if (d.steps.some((s) => s.full && s.tps !== null)) said.push("Diamonds: the maximum rate, in a closed loop. ");
		if (d.steps.some((s) => !s.kept && !s.full)) said.push("Hollow: the rate was not kept, and the latency is that of work that piled up. ");
		return drawn(ofRate(d), said, d);
	};
	kinds.size = (d) => {
		const said = d.steps.some((s) => s.tps_low !== null) ? [d.repeated ? "Points: medians. Bars: from the least to the most where a step was measured more than once, else 95 % intervals. " : "Bars: 95 % intervals. "] : [];
		if (d.law) said.push("Dotted: as many times the throughput of one. ");
		if (d.law && d.law.curve.some((p) => p[0] > d.law.most)) said.push("Broken: predicted, beyond what was measured. ");
		if (d.steps.some((s) => s.tps_low !== null) && d.steps.some((s) => s.tps !== null && s.tps_low === null)) said.push("A step without a bar was too short for an interval. ");
		return drawn(ofLaw(d), said, d);
	};
	kinds.sizes = (none, page) => drawn(ofSizes(page.sections.find((s) => s.id === "curve").chart.data), [], { steps: [] });
	function drawn(spec, said, d) {
		if (d.steps.some((s) => s.verdict === "invalid")) said.push("Crossed out: invalid. ");
		return { specs: [spec], key: spec.name, nodes: () => [place(spec)], caption: said.length > 0 ? () => said : null };
	}
})();
