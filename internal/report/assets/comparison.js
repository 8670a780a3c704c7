"use strict";
// The charts of a comparison.
(() => {
	const charts = window.stroppy.charts;
	const { el, chart, tight } = window.stroppy.parts, kinds = window.stroppy.kinds;
	const colours = ["blue", "red", "green", "purple", "amber", "grey"], dashes = [undefined, [6, 3], [2, 2], [10, 4]];

	function drawn(tag, more) {
		const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
		for (const [name, value] of Object.entries(more)) e.setAttribute(name, value);
		return e;
	}
	// ratios draws each ratio as a dot with its interval as a bar, on a log scale
	// that is the same for all and has 1 in its middle.
	function ratios(rows) {
		const far = Math.max(Math.log(1.1), ...rows.flatMap((r) => [r.ratio, r.low, r.high]).filter((x) => x > 0).map((x) => Math.abs(Math.log(x)))) * 1.08;
		const at = (x) => 50 + 48 * Math.log(x) / far, place = (x) => at(x).toFixed(2) + "%";
		const half = [1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000].filter((x) => Math.log(x) <= far && Math.log(x) >= far / 5);
		const tick = half.length > 0 ? half[half.length - 1] : null;
		const ticks = [1, ...(tick ? [tick, 1 / tick] : [])];
		const line = (r) => {
			const svg = drawn("svg", { "aria-hidden": "true" });
			for (const x of ticks) svg.append(drawn("line", { class: x === 1 ? "one" : "tick", x1: place(x), x2: place(x), y1: "0", y2: "100%" }));
			if (r.low > 0 && r.high > 0) svg.append(drawn("line", { class: "bar", x1: place(r.low), x2: place(r.high), y1: "50%", y2: "50%" }));
			if (r.ratio > 0) svg.append(drawn("circle", { class: "dot", cx: place(r.ratio), cy: "50%", r: "5" }));
			return svg;
		};
		const scale = drawn("svg", { class: "scale", "aria-hidden": "true" });
		for (const x of ticks) {
			const text = drawn("text", { x: place(x), y: "12" });
			text.textContent = charts.digits(x);
			scale.append(text);
		}
		return [...new Set(rows.map((r) => r.against))].flatMap((against) => [el("h3", {}, against), el("div", { class: "ratios" },
			rows.filter((r) => r.against === against).map((r) => el("div", { class: r.shown ? "apart" : null },
				el("span", {}, r.name), line(r), el("span", { class: "value" }, r.text), el("span", { class: "difference" + (r.shown ? "" : " none") }, tight(r.difference)))),
			el("div", {}, el("span"), scale.cloneNode(true), el("span"), el("span")))]);
	}
	function timeline(c) {
		const round = new Map();
		const lines = c.lines.map((l) => {
			const n = round.get(l.side) ?? 0;
			round.set(l.side, n + 1);
			return { label: l.label, column: l.column, colour: colours[l.side % colours.length], dash: dashes[n % dashes.length] };
		});
		return {
			name: "throughput", title: "Throughput, transactions per second", height: 300, shape: "throughput", describe: "Throughput of all runs over the time of each",
			data: [c.at_s, ...lines.map((l) => l.column)],
			options: () => ({
				padding: [8, 26, 0, 0],
				scales: { x: { time: false, range: (u, min, max) => [min, max > min ? max : min + 1] }, y: { range: charts.fromZero } }, axes: [charts.timeAxis(), charts.scaleAxis(false, charts.digits)],
				series: [{ label: "", value: (u, v, i, n) => n === null || n === undefined ? "" : charts.span(v, c.bin_s) }, ...lines.map((l) => charts.line(l.label, l.colour, charts.group, { dash: l.dash }))],
				cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, setScale: true } },
			}),
		};
	}

	kinds.ratios = (rows) => ({ specs: [], key: rows, nodes: () => ratios(rows) });
	kinds.runs = (c) => ({
		specs: [timeline(c)], key: "runs", nodes: () => [chart(timeline(c))],
		caption: () => ["Seconds since the start of each run, the warm-up among them. " + c.note + " ", el("span", { class: "screen" }, "Drag to zoom in, double-click to go back.")],
	});
})();
