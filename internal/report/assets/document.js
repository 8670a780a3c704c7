"use strict";
// Shows a report.Document: stroppy.update(data) may be called again with a newer one. The kind
// of a chart names a function of stroppy.kinds. It returns the chart's shape (key), the places
// that it fills (nodes), what is drawn there (specs), and what is written below (caption).
(() => {
	const { charts, kinds } = window.stroppy;
	const { el, icon, tight, unbroken, section, header, contents, figures, facts, command, tables } = window.stroppy.parts;
	let data = null;

	const marks = { met: "valid", missed: "warning" };
	const counts = (c) => c.required && c.status !== "not applicable"; // for the verdict
	function checks(list) {
		return el("ul", { class: "checks" }, list.map((c) => el("li", { class: counts(c) ? { met: "valid", missed: "unknown" }[c.status] ?? c.status : "for-information" },
			el("div", { class: "name" }, icon(counts(c) ? marks[c.status] ?? c.status : "note"), el("span", {}, c.page ? el("a", { href: c.page }, c.name) : c.name)),
			el("div", { class: "status" }, c.shown, c.beside ? el("span", {}, c.beside) : null),
			el("div", { class: "detail" }, c.status === "invalid" ? found(c) : [el("p", {}, c.detail), witness(c)], c.command ? command(c.command) : null))));
	}
	// wrong shows the evidence of the cause, and the other findings, a line each that opens on demand.
	function wrong(cause, failed) {
		return el("div", { class: "checks cause" },
			cause.finding ? finding(cause.finding) : checks(failed),
			cause.others.map((o) => el("details", { class: o.explained ? "explained" : "also" }, el("summary", {}, unbroken(o.title)), finding(o))),
			el("details", {}, el("summary", {}, "The checks that failed, with their transactions"), checks(failed)));
	}
	// found shows the first finding of a check; the others are folded if they are many.
	function found(c) {
		const [first, ...others] = c.findings.map(finding);
		const rest = c.rest ? el("p", { class: "note" }, c.rest) : null;
		if (others.length <= 1) return [first, others, rest, witness(c)];
		return [first, rest, el("details", {}, el("summary", {}, "More of what was found, and the transactions"), others, witness(c))];
	}
	function finding(f) {
		return el("div", { class: "finding" },
			f.text ? el("p", {}, unbroken(f.text)) : null,
			f.edges.length > 0 ? el("ol", {}, f.edges.map((e) => el("li", {}, unbroken(e.replace(/^\d+\. /, ""))))) : null,
			f.note ? el("p", { class: "note" }, f.note) : null,
			f.drawing ? el("figure", {}, drawing(f.drawing), f.file ? el("figcaption", {}, "In the run's directory: ", f.file) : null) : null);
	}
	// drawing is made by the program, with all names in it as text.
	const drawing = (svg) => document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
	const some = (list, most) => list.length <= most ? list.join(", ") : list.slice(0, most).join(", ") + ` and ${list.length - most} more`;
	function witness(c) {
		if (c.witness === null || c.witness.length === 0) return null;
		return el("div", { class: "evidence" }, el("b", {}, c.witness_of ? `Transactions (${c.witness_of})` : "Transactions"), el("ul", { class: "mono" }, el("li", {}, some(c.witness, 24))));
	}

	// show shows a section in its place; returns the names of the charts that are drawn there.
	function show(id) {
		const { chart, ...s } = data.sections.find((x) => x.id === id);
		const drawn = chart ? kinds[chart.kind](chart.data, data, () => show(id)) : { specs: [] };
		const place = section(id, s.figures ? null : s.title, [s, chart ? drawn.key : null, s.checks && data.cause], () => {
			const parts = [
				s.checks ? (id === "failed" && data.cause ? wrong(data.cause, s.checks) : checks(s.checks)) : null,
				s.figures ? figures(s.figures) : null,
				chart ? drawn.nodes() : null, drawn.caption ? el("figcaption") : null,
				s.text ? el("div", { class: "findings" }, s.text.map((text) => el("p", { class: text === "not known" ? "unknown-value" : null }, tight(text)))) : null,
				s.facts ? facts(s.facts) : null,
				tables(s.tables ?? []),
				s.note ? el("p", { class: "note" }, s.note) : null,
				s.plain ? el("pre", { class: "plain" }, s.plain) : null,
				s.command ? command(s.command) : null,
			].flat(Infinity).filter((x) => x !== null && x !== undefined);
			return s.folded ? el("details", {}, el("summary", {}, s.folded), parts) : parts;
		});
		if (drawn.caption) place.querySelector(":scope > figcaption").replaceChildren(...drawn.caption());
		for (const spec of drawn.specs) charts.draw(spec, place.querySelector(`[data-chart="${spec.name}"]`));
		return drawn.specs.map((spec) => spec.name);
	}

	function update(next) {
		data = next;
		document.title = data.title;
		const { sections, title, live, foot, ...head } = data;
		section("head", null, [head], () => header(data));
		let before = document.getElementById("contents");
		for (const s of sections) { // a new section takes its place in their order
			let place = document.getElementById(s.id);
			if (!place) before.after(place = el("section", { id: s.id }));
			before = place;
		}
		const drawn = sections.flatMap((s) => show(s.id));
		for (const place of document.querySelectorAll("#page > section")) {
			if (!["head", "contents", "foot"].includes(place.id) && !sections.some((s) => s.id === place.id)) section(place.id, null, null);
		}
		section("foot", null, [foot], () => el("footer", {}, foot, el("p", { class: "lost", id: "lost" })));
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

	document.getElementById("page").append(...["head", "contents", "foot"].map((id) => el("section", { id, hidden: true })));
	window.stroppy.update = update;
	update(JSON.parse(document.getElementById("data").textContent));
	if (data.live) setTimeout(follow, 0);
})();
