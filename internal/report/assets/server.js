"use strict";
// The charts of what the database measures of itself (PageServer), on the time axis of the
// charts of a run.
(() => {
	const charts = window.stroppy.charts;
	const { el, section, chart } = window.stroppy.parts;
	const colors = ["blue", "red", "green", "purple", "grey"];
	const dashes = [undefined, [6, 3], [2, 2]];

	// show draws them; returns what is drawn.
	function show(server, timeline) {
		if (!server || !timeline) {
			section("server", null, null);
			return [];
		}
		const time = Object.assign({}, timeline, { at_s: server.at_s, bin_s: server.bin_s });
		const specs = server.charts.map((c, i) => charts.overTime(time, {
			name: "server-" + i, title: c.title, height: 150, describe: c.title + " over the time of the run",
			lines: c.lines.map((l, n) => ({
				label: l.label, column: l.column, low: l.low, high: l.high, shade: true, color: colors[n % colors.length],
				more: () => ({ dash: dashes[Math.floor(n / colors.length) % dashes.length] }),
			})),
		}));
		const place = section("server", "The server's side", [server.note, server.charts.map((c) => [c.title, c.note])], () => [
			el("p", { class: "note" }, server.note),
			...specs.flatMap((s, i) => [chart(s), server.charts[i].note ? el("p", { class: "note" }, server.charts[i].note) : null])]);
		specs.forEach((s) => charts.draw(s, place.querySelector(`[data-chart="${s.name}"]`)));
		return specs.map((s) => s.name);
	}

	window.stroppy.server = { show };
})();
