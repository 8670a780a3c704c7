package mysql

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// programs are the paths of the programs of one installation.
type programs struct {
	prefix          string // parent of the programs' folders; empty: the system's installation
	install, server string
	provider        string // Galera's library; empty for a server without Galera
	transfer        string // folder of Galera's scripts
}

var (
	// systemFolders are the folders of MariaDB's programs in distributions.
	systemFolders = []string{"/usr/sbin", "/usr/bin", "/usr/libexec"}
	// folders are the folders of the programs below the prefix of an installation: the first three for a package, bin
	// and scripts for an archive.
	folders = []string{"sbin", "bin", "libexec", "scripts"}
	// formerly are the names of programs before MariaDB 10.5.
	formerly = map[string]string{"mariadbd": "mysqld", "mariadb-install-db": "mysql_install_db"}
)

// Bin returns the path of one of MariaDB's client programs, such as mariadb. The error is a host.MissingError if
// there is none.
func Bin(name string) (string, error) {
	return host.Find(name, debianPackage, systemFolders...)
}

func findMariaDB(_ context.Context, o cluster.Options) (programs, error) {
	return findPrograms(o, false)
}
func findGalera(_ context.Context, o cluster.Options) (programs, error) { return findPrograms(o, true) }

// findPrograms takes the programs from the folder of the parameter bin and the folders beside it. Without this
// parameter it takes the installation whose mariadbd is the first on PATH.
func findPrograms(o cluster.Options, galera bool) (p programs, err error) {
	bin, err := o.Bin()
	if err != nil {
		return p, err
	}
	if p.prefix = filepath.Dir(bin); bin == "" {
		server, err := Bin("mariadbd")
		if err == nil {
			server, err = filepath.EvalSymlinks(server)
		}
		if err != nil {
			return p, err
		}
		bin, p.prefix = filepath.Dir(server), filepath.Dir(filepath.Dir(server))
	}
	needs := map[string]*string{"mariadbd": &p.server, "mariadb-install-db": &p.install}
	var script string
	if galera {
		needs["wsrep_sst_rsync"] = &script
	}
	var lacks []string
	for name, path := range needs {
		if *path = p.find(bin, name); *path == "" {
			lacks = append(lacks, name)
		}
	}
	slices.Sort(lacks)
	switch {
	case len(lacks) > 0 && o.Params.Has("bin"):
		return p, &cluster.ParamError{Param: "bin", Reason: fmt.Sprintf("%s has no %s, nor has a folder beside it: name the folder of the programs", bin, strings.Join(lacks, ", "))}
	case len(lacks) > 0:
		return p, host.MissingError{Program: lacks[0], Package: debianPackage}
	case galera:
		p.transfer = filepath.Dir(script)
		err = p.findLibrary()
	}
	if slices.Contains(systemFolders, filepath.Join(p.prefix, "bin")) {
		p.prefix = ""
	}
	return p, err
}

// find returns the path of a program in a folder, by its name or its former one. In an installation it also looks
// into the folders beside it. It returns "" if there is none.
func (p programs) find(bin, name string) string {
	for _, name := range []string{name, formerly[name]} {
		path, err := exec.LookPath(filepath.Join(bin, name))
		for i := 0; err != nil && i < len(folders) && slices.Contains(folders, filepath.Base(bin)); i++ {
			path, err = exec.LookPath(filepath.Join(p.prefix, folders[i], name))
		}
		if err == nil && name != "" {
			return path
		}
	}
	return ""
}

// findLibrary finds Galera's library, which is a separate product and may be the system's. It also finds the programs
// with which Galera's script sends data to a joining node (rsync) and checks whether rsync listens (one of the
// others).
func (p *programs) findLibrary() (err error) {
	p.provider, err = host.FindFile("libgalera_smm.so", "galera-4",
		p.prefix+"/lib/galera", p.prefix+"/lib64/galera*", p.prefix+"/lib/*/galera", p.prefix+"/lib",
		"/usr/lib/galera", "/usr/lib64/galera*", "/usr/lib/*/galera", "/usr/local/lib/galera")
	if err == nil {
		_, err = host.Find("rsync", "rsync")
	}
	if err == nil {
		if _, err = host.Find("ss", "iproute2"); err != nil {
			_, err = host.Find("lsof", "lsof")
		}
	}
	return err
}

// basedir returns the flag for an installation in another place than it was built for.
func (p programs) basedir() []string {
	if p.prefix == "" {
		return nil
	}
	return []string{"--basedir=" + p.prefix}
}

// environment returns the server's environment for Galera's scripts.
func (p programs) environment(scratch string) []string {
	environment := append(os.Environ(), "TMPDIR="+scratch)
	if p.prefix != "" && p.transfer != "" {
		environment = append(environment, "PATH="+p.transfer+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return environment
}
