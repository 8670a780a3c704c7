"use strict";
// The page of a run: stroppy.update(data) shows a PageData, and may be called
// again with a newer one.
(() => {
	const charts = window.stroppy.charts;
	const { el, icon, capital, section, header, contents, figures, facts, tables, chart, lay } = window.stroppy.parts;
	const plots = window.stroppy.plots;
	const show = { sent: false, log: false };
	let data = null;

	function checks(list) {
		return el("ul", { class: "checks" }, list.map((c) => el("li", { class: counts(c) ? c.status : "for-information" },
			el("div", { class: "name" }, icon(counts(c) ? c.status : "note"), el("span", {}, c.name)),
			el("div", { class: "status" }, c.shown, c.status === "not applicable" || (c.status === "invalid" && !c.required) ? null : el("span", {}, c.required ? "required" : "for information")),
			el("div", { class: "detail" },
				c.status === "invalid" ? found(c) : [el("p", {}, c.detail), witness(c.witness)]))));
	}
	const counts = (c) => c.required && c.status !== "not applicable"; // for the verdict
	function objectives(list) {
		const marks = { met: "valid", missed: "warning", unknown: "unknown" };
		return el("ul", { class: "checks objectives" }, list.map((o) => el("li", { class: o.status === "met" ? "valid" : "unknown" },
			el("div", { class: "name" }, icon(marks[o.status]), el("span", {}, o.name)),
			el("div", { class: "status" }, capital(o.status)),
			el("div", { class: "detail" }, el("p", {}, o.detail)))));
	}
	// wrong shows the evidence of the cause, and the other findings, a line each that opens on demand.
	function wrong(cause, failed) {
		return el("div", { class: "checks cause" },
			cause.finding ? finding(cause.finding) : checks(failed),
			cause.others.map((o) => el("details", { class: o.explained ? "explained" : "also" }, el("summary", {}, unbroken(o.text)), finding(o.finding))),
			el("details", {}, el("summary", {}, "The checks that failed, with their transactions"), checks(failed)));
	}
	// found shows the first finding of a check; the others are folded where they are many.
	function found(c) {
		const [first, ...others] = c.findings.map(finding);
		const rest = c.rest ? el("p", { class: "note" }, c.rest) : null;
		if (others.length <= 1) return [first, others, rest, witness(c.witness)];
		return [first, rest, el("details", {}, el("summary", {}, "More of what was found, and the transactions"), others, witness(c.witness))];
	}
	function finding(f) {
		return el("div", { class: "finding" },
			f.text ? el("p", {}, unbroken(f.text)) : null,
			f.edges.length > 0 ? el("ol", {}, f.edges.map((e) => el("li", {}, unbroken(e.replace(/^\d+\. /, ""))))) : null,
			f.note ? el("p", { class: "note" }, f.note) : null,
			f.drawing ? el("figure", {}, drawing(f.drawing), f.file ? el("figcaption", {}, "In the run's directory: ", f.file) : null) : null);
	}
	// unbroken keeps each id of a transaction on one line.
	const unbroken = (s) => s.split(/(\b\d+-\d+-\d+\b)/).map((part, i) => i % 2 ? el("span", { class: "id" }, part) : part);
	// drawing is made by the program, with all names in it as text.
	const drawing = (svg) => document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
	const some = (list, most) => list.length <= most ? list.join(", ") : list.slice(0, most).join(", ") + ` and ${list.length - most} more`;
	function witness(list) {
		if (list.length === 0) return null;
		return el("div", { class: "evidence" }, el("b", {}, "Transactions"), el("ul", { class: "mono" }, el("li", {}, some(list, 24))));
	}

	// timeline shows the charts over time; returns what is drawn.
	function timeline(c) {
		const specs = c ? plots.ofTimeline(data) : [], names = specs.map((s) => s.name);
		const gone = c && c.open && !c.columns.waiting.some((n) => n > 0) ? ["No work was waiting at the end of any second."] : [];
		if (c && !data.live && !charts.known([...c.columns.client_cpu, ...c.columns.servers_cpu])) gone.push("Processors over time: not known.");
		if (c && !data.live && !charts.known([...c.columns.client_rss_mb, ...c.columns.servers_rss_mb])) gone.push("Memory over time: not known.");
		// The charts stay where they are as long as they are the same ones.
		const place = section("timeline", "Over time", names.length > 0 ? names : data.live ? null : ["none"], () => names.length === 0 ?
			el("p", { class: "unknown-value" }, "not known") : [specs.map((s) => plots.figure(s, data, () => timeline(data.timeline))), el("figcaption")].flat());
		if (!place || !c) return names;
		place.querySelector("figcaption").replaceChildren(
			"Seconds since the run's start. ", c.warmup_s > 0 ? "Grey: the warm-up, which no measurement includes. " : "",
			c.bands.length > 0 ? "Shaded: a fault, and lighter its healing, from when that was begun to when it was done; broken line: the throughput was back. " + (c.bands.length > 20 ? "Where they have no room they are in a strip above: zoom in. " : "") : "",
			c.leaders.length > 0 ? "Line with a wedge: from then on the node beside it led (Cluster events). " : "",
			c.note ? c.note + " " : "", ...plots.captions(data), ...gone.map((g) => g + " "),
			el("span", { class: "screen" }, "Drag to zoom in, double-click to go back."));
		specs.forEach((s) => charts.draw(s, place.querySelector(`[data-chart="${s.name}"]`)));
		return names;
	}
	function latency(d) {
		const h = d.histogram;
		const place = section("latency", "Latency", d.latency.length > 0 || h ? [d.latency, h !== null, h && h.sent.length > 0] : null, () => [
			h ? chart(charts.ofHistogram(h, show)) : el("p", { class: "unknown-value" }, "The distribution is not known."),
			h ? el("div", { class: "toggles" },
				h.sent.length > 0 ? toggle("sent", "since sent as well (service time)") : null, toggle("log", "shares on a logarithmic scale")) : null,
			...plots.percentileFigures(h),
			...tables(d.latency)]);
		if (!place || !h) return [];
		const specs = [charts.ofHistogram(h, show), ...plots.ofPercentiles(h, show)];
		specs.forEach((s) => charts.draw(s, place.querySelector(`[data-chart="${s.name}"]`)));
		return specs.map((s) => s.name);
	}
	function toggle(key, label) {
		return el("label", {}, el("input", { type: "checkbox", checked: show[key], onchange: (e) => { show[key] = e.target.checked; latency(data); } }), label);
	}

	function update(next) {
		data = next;
		document.title = data.title;
		section("head", null, [data.workload, data.database, data.started, data.verdict, data.reason, data.notes, data.objectives_status, data.cause ?? null], () => header(data));
		section("failed", "What is wrong", data.failed.length > 0 ? [data.cause, data.failed] : [], () => data.cause ? wrong(data.cause, data.failed) : checks(data.failed));
		section("figures", null, data.figures, figures);
		const drawn = [...timeline(data.timeline), ...window.stroppy.server.show(data.server, data.timeline), ...latency(data)];
		section("outcomes", "Outcomes", data.outcomes, tables);
		section("checks", data.failed.length > 0 ? "Other checks" : "Checks", data.checks.length > 0 ? data.checks : data.failed.length > 0 ? null : [data.live ? "They are made after the load phase." : "None was made."],
			(list) => typeof list[0] === "string" ? el("p", {}, list[0]) : checks(list));
		section("objectives", "Objectives", data.objectives, objectives);
		section("faults", "Faults", data.faults, tables);
		section("study", "For a paper", data.study, tables);
		section("cost", "Cost", data.cost, tables);
		section("what", "What was run", [data.facts, data.command], () => facts(data));
		section("details", "Configuration", data.details, (list) => el("details", {}, el("summary", {}, "Show all settings"), tables(list)));
		section("foot", null, [data.made], () => el("footer", {}, "Made by ", data.made, ". The run's directory holds the same as data: result.json, series.csv and history/.", el("p", { class: "lost", id: "lost" })));
		contents();
		charts.drop(drawn);
	}

	// A live page asks for newer data each second until the run is over.
	async function follow() {
		try {
			const answer = await fetch("data.json", { cache: "no-cache" });
			if (!answer.ok) throw new Error("status " + answer.status);
			update(await answer.json());
			document.getElementById("lost").textContent = "";
		} catch (e) {
			document.getElementById("lost").textContent = `Stroppy does not answer (${e.message}); this is what was known last.`;
		}
		if (data.live) setTimeout(follow, 1000);
	}

	lay(["head", "contents", "failed", "figures", "timeline", "server", "latency", "outcomes", "checks", "objectives", "faults", "study", "cost", "what", "details", "foot"]);
	window.stroppy.update = update;
	update(JSON.parse(document.getElementById("data").textContent));
	if (data.live) setTimeout(follow, 0);
})();