"use strict";
// The page of a sweep over scenarios: shows its study.PageData.
(() => {
	const { el, section, header, facts, table, tables, lay } = window.stroppy.parts;
	const data = JSON.parse(document.getElementById("data").textContent);

	lay(["head", "what", "runs", "missing", "tables", "foot"]);
	section("head", null, [data.verdict], () => header(data));
	section("what", "What was run", [data.facts], () => facts(data));
	section("runs", "Runs", data.runs.rows, () => table({ ...data.runs, title: "" }));
	section("missing", "Could not run", data.missing.rows, () => table({ ...data.missing, title: "" }));
	section("tables", "Beside what studies published", data.tables, tables);
	section("foot", null, [data.made], () => el("footer", {}, "Made by " + data.made + ". The sweep's directory holds the same as data: scenarios.json, and a folder for each run."));
})();
