"use strict";
// The page of isolation levels: shows its matrix.PageData.
(() => {
	const { el, section, header, facts, lay } = window.stroppy.parts;
	const data = JSON.parse(document.getElementById("data").textContent);
	const looks = { "✓": "prevented", seen: "seen", some: "some", "?": "undecided" };
	const place = (level, anomaly) => `level-${level}-${anomaly}`;

	function matrix(levels) {
		const cell = (c, level, anomaly) => el("td", { class: "text mark " + (looks[c.mark] ?? "none"), title: `${data.anomalies[anomaly].text}: ${c.sentence}` },
			looks[c.mark] ? el("a", { href: "#" + place(level, anomaly) }, c.mark) : c.mark);
		return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "levels against anomalies" }, el("table", { class: "data isolation" },
			el("thead", {}, el("tr", {}, ["level", ...data.anomalies.map((a) => a.name), "amounts to", "claims"].map((name, i) =>
				el("th", { scope: "col", class: "text", title: data.anomalies[i - 1]?.text ?? null }, name)))),
			el("tbody", {}, levels.map((l, n) => el("tr", {},
				el("td", { class: "text" }, l.name, l.default ? " ★" : null), l.cells.map((c, i) => cell(c, n, i)),
				el("td", { class: "text" }, l.amounts_to), el("td", { class: "text" + (l.verdict === "invalid" ? " mark seen" : "") }, l.claims)))))),
		el("p", { class: "note" }, "✓ looked for and not seen; seen; some: seen in some variants; n/a: not applicable; ? not decided; ★ the default."),
		data.no_schedules ? el("p", { class: "note" }, `No schedule applies: ${data.no_schedules}.`) : null];
	}
	// variant shows a schedule step by step.
	function variant(v) {
		const seen = v.schedule === "seen";
		return el("details", { class: "schedule" },
			el("summary", {}, el("b", {}, v.schedule), " ", v.variant, ": ", seen ? v.witness : v.how),
			el("ol", {}, (v.steps ?? []).map((s) => el("li", {}, el("span", { class: "transaction t" + s.transaction }, "T" + s.transaction), " ", s.step,
				s.waited ? el("i", {}, " waited") : null, s.result ? [" → ", el("b", {}, s.result)] : null))));
	}
	function level(l, n) {
		return [el("h3", {}, l.name + (l.default ? " ★" : "")), el("p", {}, `Claims ${l.claims}`, l.source ? ` (${l.source})` : "", `; amounts to ${l.amounts_to}.`),
			l.cells.map((c, i) => looks[c.mark] ? el("div", { class: "anomaly", id: place(n, i) },
				el("p", {}, el("b", {}, data.anomalies[i].name), ` ${data.anomalies[i].text}: `, el("span", { class: "mark " + looks[c.mark] }, c.mark), " ", c.sentence),
				c.load.map((text) => el("p", { class: "note" }, text)),
				c.variants.filter((v) => v.schedule !== "not applicable").map(variant)) : null),
			l.loads.map((r) => el("p", { class: "note" }, "Load: ", el("code", {}, r.command)))];
	}

	lay(["head", "matrix", "levels", "what", "foot"]);
	section("head", null, [data.verdict], () => header(data));
	section("matrix", "Levels and anomalies", data.levels, matrix);
	section("levels", "How, or what was seen", data.levels, (list) => list.flatMap(level).flat(Infinity).filter((x) => x !== null));
	section("what", "To make it again", [data.command], () => facts(data));
	section("foot", null, [data.made], () => el("footer", {}, "Made by " + data.made + "."));
})();
