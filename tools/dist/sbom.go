package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"stroppy/tools/try"
)

// bill writes the bill of materials of a binary: the modules that Go recorded in it, in the
// form of CycloneDX.
func (r *release) bill(out string, b binary) string {
	sum := sumOf(b.path)
	bom := cyclonedx.NewBOM()
	// A number that is the binary's own, and the same each time.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, sum).URN()
	main := cyclonedx.Component{
		BOMRef: "stroppy", Type: cyclonedx.ComponentTypeApplication, Name: "stroppy", Version: r.version,
		Description: summary, Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
		Properties: &[]cyclonedx.Property{{Name: "goos", Value: b.target.os}, {Name: "goarch", Value: b.target.arch}},
	}
	if r.commit != "" {
		*main.Properties = append(*main.Properties, cyclonedx.Property{Name: "commit", Value: r.commit})
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &main}
	components := componentsOf(b.info)
	bom.Components = &components
	needed := make([]string, len(components))
	for i, c := range components {
		needed[i] = c.BOMRef
	}
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: "stroppy", Dependencies: &needed}}
	var text bytes.Buffer
	try.Check(cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6))
	name := b.target.base() + ".cdx.json"
	written(filepath.Join(out, name), func(w io.Writer) { try.Must(w.Write(text.Bytes())) })
	return name
}

// componentsOf are Go's library and the modules of a binary, by name.
func componentsOf(info *debug.BuildInfo) []cyclonedx.Component {
	list := []cyclonedx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		list = append(list, component(module.Path, module.Version))
	}
	slices.SortFunc(list, func(a, b cyclonedx.Component) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func component(path, version string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url, Scope: cyclonedx.ScopeRequired}
}
