// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes what a release consists of as SPDX 2.3 documents, into the folder of the programs:
// hookgate-programs.spdx.json lists the modules in each program, and hookgate-image.spdx.json those in the image, which
// has the programs for Linux and the certificate authorities. The lists are what Go has recorded in each program, so
// scanners find the same there. The same programs give the same bytes.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	_ "golang.org/x/crypto/x509roots/fallback/bundle" // in the version that is in the image
)

const (
	module      = "github.com/hookgate/hookgate"
	authorities = "golang.org/x/crypto/x509roots/fallback"
	noAssertion = "NOASSERTION"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var version, image, created string
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.StringVar(&version, "version", "", "version of the release, which is the image's tag")
	flags.StringVar(&image, "image", "", "name of the image, without a tag")
	flags.StringVar(&created, "created", "", "time of the documents, in the form of RFC 3339")
	if err := flags.Parse(args); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	if version == "" || image == "" || flags.NArg() != 1 {
		return errors.New("want -version, -image, and the folder of the programs")
	}
	dir := flags.Arg(0)
	files, err := filepath.Glob(filepath.Join(dir, "hookgate*-*[0-9]")) // those of platforms, and no document
	if err != nil {
		return err
	}
	programs := newDocument("hookgate-programs", version, at)
	container := newDocument("hookgate-image", version, at)
	root := container.addImage(image)
	for _, file := range files {
		if _, err := programs.addProgram(file); err != nil {
			return err
		}
		if strings.HasPrefix(filepath.Base(file), "hookgate-linux-") {
			program, err := container.addProgram(file)
			if err != nil {
				return err
			}
			container.relate(root, common.TypeRelationshipContains, program)
		}
	}
	if len(programs.Packages) == 0 {
		return fmt.Errorf("%s has no programs", dir)
	}
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program has no build information")
	}
	for _, m := range own.Deps {
		if m.Path == authorities {
			container.relate(root, common.TypeRelationshipContains, container.addModule(m))
		}
	}
	return errors.Join(programs.write(dir), container.write(dir))
}

// document is an SPDX document, and the packages that it has by their identifiers.
type document struct {
	spdx.Document
	version string
	has     map[common.ElementID]bool
}

func newDocument(name, version string, created time.Time) *document {
	return &document{
		Document: spdx.Document{
			SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
			DocumentNamespace: "https://" + module + "/releases/download/" + version + "/" + name + ".spdx.json",
			CreationInfo: &spdx.CreationInfo{
				Created: created.UTC().Format(time.RFC3339),
				Creators: []common.Creator{
					{CreatorType: "Organization", Creator: "The Hookgate Authors"},
					{CreatorType: "Tool", Creator: "hookgate-sbom-" + version},
				},
			},
		},
		version: version, has: map[common.ElementID]bool{},
	}
}

func (d *document) write(dir string) (err error) {
	slices.SortFunc(d.Packages, func(a, b *spdx.Package) int {
		return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier)
	})
	f, err := os.Create(filepath.Join(dir, d.DocumentName+".spdx.json"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return spdxjson.Write(&d.Document, f, spdxjson.Indent(" "))
}

func (d *document) relate(a common.ElementID, relationship string, b common.ElementID) {
	d.Relationships = append(d.Relationships, &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: a}, Relationship: relationship, RefB: common.DocElementID{ElementRefID: b},
	})
}

// unnamed matches what an identifier may not have.
var unnamed = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// add adds a package unless the document has it, and returns its identifier.
func (d *document) add(id, purl string, p spdx.Package) common.ElementID {
	p.PackageSPDXIdentifier = common.ElementID(unnamed.ReplaceAllString(id, "-"))
	if d.has[p.PackageSPDXIdentifier] {
		return p.PackageSPDXIdentifier
	}
	d.has[p.PackageSPDXIdentifier] = true
	p.PackageDownloadLocation = cmp.Or(p.PackageDownloadLocation, noAssertion)
	p.PackageLicenseConcluded = noAssertion
	p.PackageLicenseDeclared = cmp.Or(p.PackageLicenseDeclared, noAssertion)
	p.PackageCopyrightText = noAssertion
	p.PackageExternalReferences = []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: strings.ReplaceAll(purl, "+", "%2B"),
	}}
	d.Packages = append(d.Packages, &p)
	return p.PackageSPDXIdentifier
}

// addOwn adds what the release publishes, and that the document is about it.
func (d *document) addOwn(purl string, p spdx.Package) common.ElementID {
	p.PackageVersion = d.version
	p.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: "The Hookgate Authors"}
	p.PackageLicenseDeclared = "Apache-2.0"
	id := d.add("Own-"+p.PackageName, purl, p)
	d.relate("DOCUMENT", common.TypeRelationshipDescribe, id)
	return id
}

func (d *document) addImage(name string) common.ElementID {
	purl := "pkg:oci/" + name[strings.LastIndex(name, "/")+1:] + "?repository_url=" + name + "&tag=" + d.version
	return d.addOwn(purl, spdx.Package{PackageName: name, PrimaryPackagePurpose: "CONTAINER"})
}

// addProgram adds a program, and what Go has compiled into it: the standard library, and packages of modules.
func (d *document) addProgram(file string) (common.ElementID, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read build information of %s: %w", file, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	name := filepath.Base(file)
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	purl := "pkg:golang/" + info.Main.Path + "@" + d.version
	if path, ok := strings.CutPrefix(info.Path, info.Main.Path+"/"); ok {
		purl += "#" + path
	}
	program := d.addOwn(purl, spdx.Package{
		PackageName: name, PackageFileName: name, PrimaryPackagePurpose: "APPLICATION",
		PackageDownloadLocation: "https://" + module + "/releases/download/" + d.version + "/" + name,
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
	})
	library := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")}
	for _, m := range append([]*debug.Module{library}, info.Deps...) {
		d.relate(program, common.TypeRelationshipDependsOn, d.addModule(m))
	}
	return program, nil
}

// addModule adds a module. One that is replaced by a folder, of this repository, has the version of the release.
func (d *document) addModule(m *debug.Module) common.ElementID {
	path, version := m.Path, m.Version
	if m.Replace != nil {
		path, version = m.Replace.Path, m.Replace.Version
		if strings.HasPrefix(path, ".") || filepath.IsAbs(path) {
			path, version = m.Path, d.version
		}
	}
	p := spdx.Package{PackageName: path, PackageVersion: version}
	return d.add("Module-"+path+"-"+version, "pkg:golang/"+path+"@"+version, p)
}
