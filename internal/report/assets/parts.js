"use strict";
// The parts that pages are made of. Text reaches a page as text only, never as
// markup.
(() => {
	const charts = window.stroppy.charts;
	const seen = new Map(); // section -> what it shows, as JSON

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
			d.answer && d.answer.length > 0 ? el("div", { class: "answer" }, d.answer.map((text) => el("p", {}, tight(text)))) : null,
			el("p", { class: "what" }, el("b", {}, d.workload || "workload not known"), " on ", el("b", {}, d.database || "a database that is not known"), d.started ? " · " + d.started : null),
			el("h1", { class: "verdict " + d.verdict }, icon(["valid", "invalid", "unknown"].includes(d.verdict) ? d.verdict : "note"), el("span", {}, capital(d.verdict)),
				d.objectives_status === "missed" || d.objectives_status === "unknown" ? el("span", { class: "beside" }, d.objectives_status === "missed" ? "objectives missed" : "objectives not decided") : null),
			d.reason ? el("p", { class: "reason" }, tight(d.reason)) : null,
			d.cause ? el("p", { class: "whose" }, tight(d.cause.whose)) : null,
			d.cause ? el("p", { class: "cure" }, el("b", {}, "What to do: "), tight(d.cause.cure)) : null,
			d.notes.length === 0 ? null : el("ul", { class: "notes" }, d.notes.map((n) =>
				el("li", { class: n.kind }, icon(n.kind), el("span", {}, n.kind === "warning" ? el("b", {}, "Warning. ") : null, tight(n.text))))));
	}
	// contents lists the parts that a page shows, where they are many.
	function contents() {
		const parts = [...document.querySelectorAll("#page > section:not([hidden])")].filter((s) => s.querySelector(":scope > h2"));
		const titles = parts.map((s) => [s.id, s.querySelector(":scope > h2").textContent]);
		section("contents", null, titles.length < 4 ? null : titles, (list) => el("nav", { "aria-label": "Contents" },
			list.map(([id, title]) => el("a", { href: "#" + id }, title))));
	}
	function figures(list) {
		return el("dl", { class: "figures" }, list.map((f) => el("div", {},
			el("dt", {}, f.name),
			el("dd", { class: "value " + (mark(f.value) || "") }, f.value, f.unit ? el("small", {}, f.unit) : null),
			f.below.map((line) => el("dd", { class: "below" }, tight(line))))));
	}
	function facts(list) {
		return el("dl", { class: "facts" }, list.map((f) => [el("dt", {}, f.name), el("dd", { class: mark(f.value) }, tight(f.value))]));
	}
	function command(text) {
		return el("div", { class: "command" }, el("code", {}, text.split(/( )/).map((word) => word.startsWith("-") && word.length < 30 ? el("span", { class: "flag" }, word) : word)), copy("Copy", text));
	}
	// unbroken keeps each id of a transaction on one line.
	const unbroken = (s) => s.split(/(\b\d+-\d+-\d+\b)/).map((part, i) => i % 2 ? el("span", { class: "id" }, part) : part);

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

	// table shows a DataTable. A row with a page leads there from its first cell; one
	// with a mark has that icon before it.
	function table(t) {
		const text = (i) => t.text_columns.includes(i), last = t.columns.length - 1;
		const cell = (s, i) => el("td", { class: [text(i) ? "text" : "", text(i) && s.length > 18 ? "long" : "", mark(s) || ""].join(" ").trim() || null }, s);
		const first = (r) => el("td", { class: text(0) ? "text" : null },
			r.mark ? icon(r.mark) : null, r.mark ? " " : null, r.page ? el("a", { href: r.page }, r.cells[0]) : r.cells[0]);
		const rows = t.rows.flatMap((r) => [
			el("tr", { class: [r.below ? "has-below" : "", r.mark || ""].join(" ").trim() || null }, r.page || r.mark ? [first(r), r.cells.slice(1).map((s, i) => cell(s, i + 1))] : r.cells.map(cell)),
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

	function chart(spec) {
		return el("figure", { class: "chart", "data-chart": spec.name, role: "img", "aria-label": spec.describe },
			el("div", { class: "head" }, el("h3", {}, spec.title), el("div", { class: "legend" })), el("div", { class: "plot" }));
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

	window.stroppy.kinds = {};
	window.stroppy.parts = { el, icon, tight, unbroken, section, header, contents, figures, facts, command, tables, chart };
})();
