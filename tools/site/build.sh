#!/bin/sh
# Builds the documents into dist/site, a site with search that works offline. A dead link is an error.
# The generator is installed into dist/site-tools, a virtual environment of Python. Exit code 3: it cannot be installed.
set -eu
export NO_MKDOCS_2_WARNING=1
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null || { echo "build.sh: install Python 3 first: there is no python3 on PATH" >&2; exit 3; }
tools=dist/site-tools
if ! [ "$tools/installed" -nt tools/site/requirements.txt ]; then
	python3 -m venv "$tools" || exit 3
	"$tools/bin/pip" install --quiet --disable-pip-version-check -r tools/site/requirements.txt || exit 3
	touch "$tools/installed"
fi
# The pages link to files outside of docs, so the generator sees the same tree as the repository.
rm -rf dist/site-pages
mkdir -p dist/site-pages
for entry in docs scenarios dashboards README.md CONTRIBUTING.md CHANGELOG.md LICENSE; do
	ln -s "../../$entry" "dist/site-pages/$entry"
done
"$tools/bin/mkdocs" build --quiet --strict --config-file tools/site/mkdocs.yml
echo "dist/site/index.html"
