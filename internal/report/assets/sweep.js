"use strict";
// The page of a sweep: shows its PageData.
(() => {
	const charts = window.stroppy.charts;
	const { el, icon, copy, section, header, figures, facts, tables, table, chart, lay } = window.stroppy.parts;
	const data = JSON.parse(document.getElementById("data").textContent);

	function show(id, title, specs, more) {
		const place = section(id, title, [title], () => [...specs.map(chart), ...more.filter((x) => x !== null)]);
		for (const s of specs) charts.draw(s, place.querySelector(`[data-chart="${s.name}"]`));
	}
	const findings = () => el("div", { class: "findings" }, data.findings.map((text) => el("p", {}, text)));
	function ofRate() {
		const behind = data.steps.some((s) => !s.kept && !s.full);
		const said = ["Latency from the intended start time, by throughput. The line joins the steps in the order of the rate asked. "];
		if (data.repeated) said.push("Points: medians where a step was measured more than once. ");
		if (data.steps.some((s) => s.full && s.tps !== null)) said.push("Diamonds: the maximum rate, in a closed loop. ");
		if (behind) said.push("Hollow: the rate was not kept, and the latency is that of work that piled up. ");
		if (data.steps.some((s) => s.verdict === "invalid")) said.push("Crossed out: invalid. ");
		show("curve", "Throughput and latency", data.steps.length > 0 ? [charts.ofRate(data)] : [],
			[data.steps.length > 0 ? el("figcaption", {}, said) : null, findings(), ...tables(data.coefficients)]);
	}
	function ofSize() {
		const said = data.steps.some((s) => s.low !== null) ? [data.repeated ? "Points: medians. Bars: from the least to the most where a step was measured more than once, else 95 % intervals. " : "Bars: 95 % intervals. "] : [];
		if (data.law) said.push("Dotted: as many times the throughput of one. ");
		if (data.law && data.law.curve.some((p) => p[0] > data.law.most)) said.push("Broken: predicted, beyond what was measured. ");
		if (data.steps.some((s) => s.low !== null) && data.steps.some((s) => s.tps !== null && s.low === null)) said.push("A step without a bar was too short for an interval. ");
		if (data.steps.some((s) => s.verdict === "invalid")) said.push("Crossed out: invalid. ");
		show("curve", "Scalability", data.steps.length > 0 ? [charts.ofLaw(data)] : [],
			[said.length > 0 ? el("figcaption", {}, said) : null, findings(), ...tables(data.coefficients)]);
		if (data.steps.length > 0) show("latency", "Latency", [charts.ofSizes(data)], [el("figcaption", {}, "Of committed transactions from the intended start time, on a logarithmic scale.")]);
	}

	// failed shows what was found in the invalid steps.
	function failed(list) {
		return [el("ul", { class: "checks" }, list.map((f) => el("li", { class: "invalid" },
			el("div", { class: "name" }, icon("invalid"), el("span", {}, f.page ? el("a", { href: f.page }, f.step) : f.step)),
			el("div", { class: "status" }, f.check),
			el("div", { class: "detail" }, el("p", {}, f.text), f.more ? el("p", { class: "note" }, f.more) : null,
				f.witness.length > 0 ? el("div", { class: "evidence" }, el("b", {}, `Transactions (${f.witness_of})`), el("ul", { class: "mono" }, el("li", {}, f.witness.join(", ")))) : null,
				f.command ? el("div", { class: "command" }, el("code", {}, f.command), copy("Copy", f.command)) : null)))),
		data.failed_more ? el("p", { class: "note" }, data.failed_more) : null].filter((x) => x !== null);
	}
	function details() {
		return el("details", {}, el("summary", {}, "Show the settings that all steps share, and the machine"), tables(data.environment), data.settings ? el("pre", { class: "plain" }, data.settings) : null);
	}

	lay(["head", "failed", "figures", "curve", "latency", "steps", "what", "details", "foot"]);
	section("head", null, [data.verdict], () => header(data));
	section("failed", "What is wrong", data.failed, failed);
	section("figures", null, data.figures, figures);
	if (data.axis === "rate") ofRate(); else ofSize();
	section("steps", "Steps", data.table.rows, () => table(data.table));
	section("what", "What was swept", [data.facts], () => facts(data));
	section("details", "Configuration", data.settings || data.environment.length > 0 ? [data.settings] : [], details);
	section("foot", null, [data.made], () => el("footer", {}, data.made === "stroppy" ? "Made by stroppy" : "Made by " + data.made, ". The sweep's directory holds the same as data: sweep.json, and a folder for each step."));
})();
