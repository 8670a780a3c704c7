"use strict";
// The page: stroppy.update(data) shows a PageData, and may be called again with a
// newer one. Text reaches the page as text only, never as markup.
(() => {
	const main = document.getElementById("page"), charts = window.stroppy.charts;
	const seen = new Map(); // section -> what it shows, as JSON
	const show = { sent: false, log: false };
	let data = null;

	// el makes an element; what is null is left out.
	function el(tag, more, ...inside) {
		const e = document.createElement(tag);
		for (const [name, value] of Object.entries(more || {})) {
			if (name === "onclick" || name === "onchange") e[name] = value;
			else if (value !== null && value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : value);
		}
		e.append(...inside.flat(Infinity).filter((x) => x !== null && x !== undefined));
		return e;
	}
	function icon(name) {
		const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), use = document.createElementNS(ns, "use");
		svg.setAttribute("class", "icon");
		svg.setAttribute("aria-hidden", "true");
		use.setAttribute("href", "#icon-" + name);
		svg.append(use);
		return svg;
	}
	const capital = (s) => s.charAt(0).toUpperCase() + s.slice(1);
	// tight keeps a number and its unit on one line.
	const tight = (s) => s.replace(/(\d) (%|ms|µs|s|MB|GB|kB)(?![\w])/g, "$1\u00a0$2");
	const missing = (s) => s === "not known" || s.startsWith("not known:");
	const mark = (s) => missing(s) ? "unknown-value" : null;

	// section shows a part of the page, which is made again only where it changed.
	function section(id, title, value, make) {
		const place = document.getElementById(id);
		place.hidden = value === null || (Array.isArray(value) && value.length === 0);
		if (place.hidden) return null;
		const text = JSON.stringify(value);
		if (seen.get(id) !== text) {
			seen.set(id, text);
			place.replaceChildren(...[title ? el("h2", {}, title) : null, ...[make(value)].flat()].filter((x) => x !== null));
		}
		return place;
	}

	function header(d) {
		return el("header", {},
			el("p", { class: "what" }, el("b", {}, d.workload || "workload not known"), " on ", el("b", {}, d.database || "a database that is not known"), d.started ? " · " + d.started : null),
			el("h1", { class: "verdict " + d.verdict }, icon(d.verdict === "running" ? "note" : d.verdict), el("span", {}, capital(d.verdict))),
			d.reason ? el("p", { class: "reason" }, tight(d.reason)) : null,
			d.notes.length === 0 ? null : el("ul", { class: "notes" }, d.notes.map((n) =>
				el("li", { class: n.kind }, icon(n.kind), el("span", {}, n.kind === "warning" ? el("b", {}, "Warning. ") : null, tight(n.text))))));
	}
	function figures(list) {
		return el("dl", { class: "figures" }, list.map((f) => el("div", {},
			el("dt", {}, f.name),
			el("dd", { class: "value " + (mark(f.value) || "") }, f.value, f.unit ? el("small", {}, f.unit) : null),
			f.below.map((line) => el("dd", { class: "below" }, tight(line))))));
	}
	function facts(d) {
		const list = el("dl", { class: "facts" }, d.facts.map((f) => [el("dt", {}, f.name), el("dd", { class: mark(f.value) }, tight(f.value))]));
		if (!d.command) return list;
		return [list, el("div", { class: "command" }, el("code", {}, d.command.split(/( )/).map((word) => word.startsWith("-") && word.length < 30 ? el("span", { class: "flag" }, word) : word)), copy("Copy", d.command))];
	}

	// copy is a button that copies a text, also where a page may not use the
	// clipboard by itself.
	function copy(label, text) {
		return el("button", {
			type: "button", onclick: async (event) => {
				const button = event.target;
				let done = true;
				try {
					await navigator.clipboard.writeText(text);
				} catch {
					const area = el("textarea", { readonly: true });
					area.value = text;
					document.body.append(area);
					area.select();
					done = document.execCommand("copy");
					area.remove();
				}
				button.textContent = done ? "Copied" : "Select the text and copy it by hand";
				setTimeout(() => { button.textContent = label; }, 2000);
			},
		}, label);
	}

	function table(t) {
		const text = (i) => t.text_columns.includes(i), last = t.columns.length - 1;
		const cell = (s, i) => el("td", { class: [text(i) ? "text" : "", text(i) && s.length > 18 ? "long" : "", mark(s) || ""].join(" ").trim() || null }, s);
		const rows = t.rows.flatMap((r) => [
			el("tr", { class: r.below ? "has-below" : null }, r.cells.map(cell)),
			...(r.below ? [el("tr", { class: "below" }, el("td", {}), el("td", { colspan: last }, r.below.map((line) => el("div", {}, line))))] : []),
		]);
		return [
			t.title || t.markdown ? el("div", { class: "with-button" }, el("h3", {}, t.title), t.markdown ? copy("Copy as Markdown", t.markdown) : null) : null,
			el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t.title || "table" }, el("table", { class: "data" },
				el("thead", {}, el("tr", {}, t.columns.map((c, i) => el("th", { scope: "col", class: text(i) ? "text" : null }, c)))),
				el("tbody", {}, rows))),
			t.note ? el("p", { class: "note" }, t.note) : null,
		].filter((x) => x !== null);
	}
	const tables = (list) => list.flatMap(table);

	function checks(list) {
		return el("ul", { class: "checks" }, list.map((c) => el("li", { class: c.required ? c.status : "for-information" },
			el("div", { class: "name" }, icon(c.status), el("span", {}, c.name)),
			el("div", { class: "status" }, capital(c.status), el("span", {}, c.required ? "required" : "for information")),
			el("div", { class: "detail" },
				el("p", {}, c.detail),
				evidence("Anomalies", c.anomalies, false), evidence("Transactions", c.witness.length > 0 ? [some(c.witness, 24)] : [], true), evidence("Recorded in", several(c.where, 12), true)))));
	}
	const some = (list, most) => list.length <= most ? list.join(", ") : list.slice(0, most).join(", ") + ` and ${list.length - most} more`;
	const several = (list, most) => list.length <= most ? list : [...list.slice(0, most), `and ${list.length - most} more`];
	function evidence(name, list, mono) {
		if (list.length === 0) return null;
		return el("div", { class: "evidence" }, el("b", {}, name), el("ul", { class: mono ? "mono" : null }, list.map((s) => el("li", {}, s))));
	}

	function chart(spec) {
		return el("figure", { class: "chart", "data-chart": spec.name, role: "img", "aria-label": spec.describe },
			el("div", { class: "head" }, el("h3", {}, spec.title), el("div", { class: "legend" })), el("div", { class: "plot" }));
	}
	// course shows the charts over time; returns what is drawn.
	function course(c) {
		const specs = c ? charts.ofCourse(c) : [], names = specs.map((s) => s.name);
		const gone = c && c.open && !c.columns.waiting.some((n) => n > 0) ? ["No work was waiting at the end of any second."] : [];
		if (c && !charts.known([...c.columns.client_cpu, ...c.columns.servers_cpu])) gone.push("Processors over time: not known.");
		if (c && !charts.known([...c.columns.client_rss_mb, ...c.columns.servers_rss_mb])) gone.push("Memory over time: not known.");
		// The charts stay where they are as long as they are the same ones.
		const place = section("course", "Over time", names.length > 0 ? names : ["none"], () => names.length === 0 ?
			el("p", { class: "unknown-value" }, "not known") : [specs.map(chart), el("figcaption")].flat());
		if (!c) return names;
		place.querySelector("figcaption").replaceChildren(
			"Seconds since the run's start. ", c.warmup_s > 0 ? "Grey: the warm-up, which no figure counts. " : "",
			c.bands.length > 0 ? "Shaded: a fault from its injection to its heal; broken line: the throughput was back. " : "",
			c.note ? c.note + " " : "", ...gone.map((g) => g + " "),
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
			...tables(d.latency)]);
		if (!place || !h) return [];
		charts.draw(charts.ofHistogram(h, show), place.querySelector("[data-chart]"));
		return ["histogram"];
	}
	function toggle(key, label) {
		return el("label", {}, el("input", { type: "checkbox", checked: show[key], onchange: (e) => { show[key] = e.target.checked; latency(data); } }), label);
	}

	function update(next) {
		data = next;
		document.title = data.title;
		section("head", null, [data.workload, data.database, data.started, data.verdict, data.reason, data.notes], () => header(data));
		section("figures", null, data.figures, figures);
		section("what", "What was run", [data.facts, data.command], () => facts(data));
		const drawn = [...course(data.course), ...latency(data)];
		section("outcomes", "Outcomes", data.outcomes, tables);
		section("checks", "Checks", data.checks.length > 0 ? data.checks : [data.live ? "They are made after the drive." : "None was made."],
			(list) => typeof list[0] === "string" ? el("p", {}, list[0]) : checks(list));
		section("faults", "Faults", data.faults, tables);
		section("study", "For a paper", data.study, tables);
		section("cost", "Cost", data.cost, tables);
		section("details", "Configuration", data.details, (list) => el("details", {}, el("summary", {}, "Show all settings"), tables(list)));
		section("foot", null, [data.made], () => el("footer", {}, "Made by ", data.made, ". The run's directory holds the same as data: result.json, series.csv and history/.", el("p", { class: "lost", id: "lost" })));
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

	let waiting = 0;
	window.addEventListener("resize", () => {
		cancelAnimationFrame(waiting);
		waiting = requestAnimationFrame(charts.resize);
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", charts.renew);
	// Paper is light and has no pointer: charts are drawn in light colours, and what
	// is folded is opened.
	const opened = [];
	window.addEventListener("beforeprint", () => {
		document.documentElement.dataset.theme = "light";
		for (const d of document.querySelectorAll("details:not([open])")) { d.open = true; opened.push(d); }
		charts.renew();
	});
	window.addEventListener("afterprint", () => {
		delete document.documentElement.dataset.theme;
		for (const d of opened.splice(0)) d.open = false;
		charts.renew();
	});

	for (const id of ["head", "figures", "what", "course", "latency", "outcomes", "checks", "faults", "study", "cost", "details", "foot"]) {
		main.append(el("section", { id, hidden: true }));
	}
	window.stroppy.update = update;
	update(JSON.parse(document.getElementById("data").textContent));
	if (data.live) setTimeout(follow, 1000);
})();
