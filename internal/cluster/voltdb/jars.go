package voltdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// Variable is the environment variable that names the folder of the jars.
const Variable = "STROPPY_VOLTDB"

// jars are the jars of a VoltDB 10.0 server by their Maven coordinates.
var jars = []string{
	"org.voltdb:voltdb:10.0", "log4j:log4j:1.2.17", "org.apache.commons:commons-lang3:3.9",
	"org.aeonbits.owner:owner:1.0.12", "org.aeonbits.owner:owner-java8:1.0.12",
	"javax.xml.bind:jaxb-api:2.3.0", "com.sun.xml.bind:jaxb-core:2.3.0.1", "com.sun.xml.bind:jaxb-impl:2.3.0.1",
	"javax.activation:activation:1.1.1", "org.apache.felix:org.apache.felix.framework:5.6.12",
	"net.java.dev.jna:jna:5.5.0", "org.xerial.snappy:snappy-java:1.1.7.3", "io.netty:netty-all:4.1.32.Final",
	"org.apache.calcite:calcite-core:1.17.0",
	"org.eclipse.jetty:jetty-util:9.4.33.v20201020", "org.eclipse.jetty:jetty-server:9.4.33.v20201020",
}

// classPath returns the class path for a folder with all jars. The error is a host.MissingError if no folder is
// named, and a *cluster.ParamError if jars are missing.
func classPath(folder string) (string, error) {
	if folder == "" {
		return "", host.MissingError{Program: "voltdb-10.0.jar", Hint: "fetch the jars of VoltDB with scripts/voltdb.sh and name their folder in " + Variable}
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	var missing []string
	for _, coordinates := range jars {
		part := strings.Split(coordinates, ":")
		if info, err := os.Stat(filepath.Join(folder, part[1]+"-"+part[2]+".jar")); err != nil || info.Size() == 0 {
			missing = append(missing, coordinates)
		}
	}
	if len(missing) > 0 {
		return "", &cluster.ParamError{Param: "jars", Reason: fmt.Sprintf("the folder %s lacks %d of the %d jars of VoltDB: get %s from Maven Central, or run scripts/voltdb.sh",
			folder, len(missing), len(jars), strings.Join(missing, ", "))}
	}
	return filepath.Join(folder, "*"), nil
}
