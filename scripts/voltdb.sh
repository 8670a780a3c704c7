#!/bin/sh
# Fetches the jars of VoltDB 10.0 (34 MB) with Maven and prints their folder: $1, or one in the user's
# cache. Set STROPPY_VOLTDB to this folder, and `stroppy … --cluster voltdb:3` starts servers from it.
set -eu

folder=${1-${XDG_CACHE_HOME-$HOME/.cache}/stroppy/voltdb-10.0}
# The names are those in internal/cluster/voltdb/jars.go.
jars='org.voltdb:voltdb:10.0 log4j:log4j:1.2.17 org.apache.commons:commons-lang3:3.9
org.aeonbits.owner:owner:1.0.12 org.aeonbits.owner:owner-java8:1.0.12 javax.xml.bind:jaxb-api:2.3.0
com.sun.xml.bind:jaxb-core:2.3.0.1 com.sun.xml.bind:jaxb-impl:2.3.0.1 javax.activation:activation:1.1.1
org.apache.felix:org.apache.felix.framework:5.6.12 net.java.dev.jna:jna:5.5.0 org.xerial.snappy:snappy-java:1.1.7.3
io.netty:netty-all:4.1.32.Final org.apache.calcite:calcite-core:1.17.0
org.eclipse.jetty:jetty-util:9.4.33.v20201020 org.eclipse.jetty:jetty-server:9.4.33.v20201020'

mkdir -p "$folder"
missing=
for jar in $jars; do
	artifact=${jar#*:}
	[ -s "$folder/${artifact%:*}-${jar##*:}.jar" ] || missing="$missing $jar"
done
if [ -n "$missing" ]; then
	command -v mvn >/dev/null || { echo "voltdb.sh: install the Debian package maven first" >&2; exit 3; }
	pom=$(mktemp)
	trap 'rm -f "$pom"' EXIT
	{
		echo '<project><modelVersion>4.0.0</modelVersion><groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><dependencies>'
		for jar in $missing; do
			artifact=${jar#*:}
			echo "<dependency><groupId>${jar%%:*}</groupId><artifactId>${artifact%:*}</artifactId><version>${jar##*:}</version>" \
				'<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>'
		done
		echo '</dependencies></project>'
	} >"$pom"
	mvn -q -B -Dstyle.color=never -f "$pom" dependency:copy-dependencies "-DoutputDirectory=$folder" >&2
fi
echo "$folder"
