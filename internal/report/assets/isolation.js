"use strict";
// The table of isolation levels (matrix.Chart), and below it what was seen.
(() => {
	const { el } = window.stroppy.parts;
	const looks = { "✓": "prevented", seen: "seen", some: "some", "?": "undecided" };
	const place = (level, anomaly) => `level-${level}-${anomaly}`;

	// label puts a mark in brackets if the load was short.
	const label = (c) => c.few_transactions ? `(${c.mark})` : c.mark;

	function matrix(data) {
		const cell = (c, level, anomaly) => el("td", { class: "text mark " + (looks[c.mark] ?? "none"), title: `${data.anomalies[anomaly].value}: ${c.sentence}` },
			looks[c.mark] ? el("a", { href: "#" + place(level, anomaly) }, label(c)) : c.mark);
		const heads = ["level", "claims", "upper bound", "transactions", "schedules"];
		return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "levels against anomalies" }, el("table", { class: "data isolation" },
			el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col", class: "text" }, name)),
				data.anomalies.map((a) => el("th", { scope: "col", class: "text", title: a.value }, a.name)))),
			el("tbody", {}, data.levels.map((l, n) => el("tr", {},
				el("td", { class: "text" }, l.name, l.default ? " ★" : null), el("td", { class: "text" + (l.verdict === "invalid" ? " mark seen" : "") }, l.claims_short),
				el("td", { class: "text" }, l.upper_bound), el("td", {}, l.transactions.toLocaleString("en")), el("td", {}, l.schedules),
				l.anomalies.map((c, i) => cell(c, n, i))))))),
		el("p", { class: "note" }, data.legend + "; ★ the default. Upper bound: the strongest level of which no violation was seen in so many transactions and schedules; the level may give less."),
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
	function level(data, l, n) {
		return [el("h3", {}, l.name + (l.default ? " ★" : "")), el("p", {}, `Claims ${l.claims}`, l.source ? ` (${l.source})` : "", `. ${l.summary}`),
			l.anomalies.map((c, i) => looks[c.mark] ? el("div", { class: "anomaly", id: place(n, i) },
				el("p", {}, el("b", {}, data.anomalies[i].name), ` ${data.anomalies[i].value}: `, el("span", { class: "mark " + looks[c.mark] }, label(c)), " ", c.sentence),
				(c.load === "seen" ? c.witnesses.slice(-1) : []).map((text) => el("p", { class: "note" }, text)),
				c.variants.filter((v) => v.schedule !== "not applicable").map(variant)) : null),
			l.loads.map((r) => el("p", { class: "note" }, "Load: ", el("code", {}, r.command)))];
	}

	window.stroppy.kinds.isolation = (data) => ({
		specs: [], key: data,
		nodes: () => [...matrix(data), el("h2", {}, "How, or what was seen"), ...data.levels.flatMap((l, n) => level(data, l, n))].flat(Infinity).filter((x) => x !== null),
	});
})();
